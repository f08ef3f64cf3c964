#include "order.h"

/* Still there. */
int before(void) { return first(); }

int broken(int a) {
    int b = ;
    return a + (b;
}

static int after(void) { return second(); }

#if SHOP_DEBUG
int last;
