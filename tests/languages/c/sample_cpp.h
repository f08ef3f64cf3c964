#pragma once

#include "order.h"

#ifdef __cplusplus
extern "C" {
#endif
int shop_open(void);
#ifdef __cplusplus
}
#endif

namespace shop {

/// A header by its name, C++ by what it holds.
class Ledger {
    int rows_;

public:
    explicit Ledger(int rows);
    SHOP_API int rows() const noexcept;
};

}  // namespace shop
