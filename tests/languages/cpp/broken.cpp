#include "order.hpp"

namespace shop {

/// Still there.
class Order {
public:
    int total( const;
    int after() const { return sum(); }
};

int broken(int a { return a; }

int last() { return next(); }

}
