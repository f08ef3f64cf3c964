/*
 * Orders: what a customer asked for.
 */
#include "order.h"
#include <stdlib.h>
#include <sys/types.h>

#define GROW 8
#define LOG(...) fprintf(stderr, __VA_ARGS__)

enum { FIRST_ID = 1, NO_ID = 0 };

enum currency {
    EUR, /* the default */
    USD
};

union bits {
    unsigned whole;
    unsigned char bytes[4];
};

struct shelf {
    struct slot { int row; } *slots;
    int (*compare)(const void *, const void *);
};

/* How often an order was opened. */
static unsigned opened = 0, *opened_at;
const char *const order_names[] = {
    "open",
    "paid",
};
int limits[2][3];
static int (*on_error)(int code) = NULL;
static struct cache { int hits; } cache;

static int compare(const void *a, const void *b);

// Finds a line.
// Returns NULL if there is none.
static inline struct line *find(const order_t *order, int number) {
    struct local { int at; } here = { 0 };
    for (size_t i = 0; i < order->count; i++)
        if (line_number(&order->lines[i]) == number) return &order->lines[i];
    return NULL;
}

order_t *order_open(order_id id, const char *customer)
{
    order_t *made = calloc(1, sizeof(struct order));
    if (made == NULL) {
        LOG("no memory for %lu\n", id);
        exit(1);
    }
    made->lines = lines_of(customer);
    opened++;
    return made;
}

char **order_names_of(int count) { return names_copy(order_names, count); }

/* A visitor for the state. */
line_visitor visitor_for(order_state state);

int (*handler_of(int code))(int) { return code ? on_error : 0; }

#ifdef SHOP_DEBUG
static void dump(const order_t *order) { order->flags.whole = 0; order->vtable->print((point *)order); }
#else
static void dump(const order_t *order) {}
#endif

__attribute__((noreturn)) static void fail(const char *why)
{
    abort();
}

int old_style(a, b)
    int a;
    char *b;
{
    return compare(&a, b);
}
