#ifndef SHOP_ORDER_H
#define SHOP_ORDER_H

#include <stddef.h>
#include "shop/line.h"

#ifdef __cplusplus
extern "C" {
#endif

/** The most lines that an order has. */
#define ORDER_MAX_LINES 50

/* Prices are in cents. */
#define CENTS(units, rest) \
    ((units) * 100 + (rest))

struct order;

/**
 * Called once for each line.
 *
 * @return 0 to go on
 */
typedef int (*line_visitor)(const struct line *line,
                            void *context);

typedef unsigned long order_id;

/** An order, as it is kept. */
typedef struct order {
    order_id id;
    struct line *lines;
    size_t count;
    union {
        int whole;
        unsigned char bytes[4];
    } flags;
} order_t, *order_ref;

typedef struct { double x, y; } point;

typedef enum { ORDER_OPEN, ORDER_PAID } order_state;

/** Opens an order. */
order_t *order_open(order_id id,
                    const char *customer);

int order_each(const order_t *order, line_visitor visit, void *context);

extern const char *const order_names[];

#ifdef __cplusplus
}
#endif

#endif
