/** Orders of a shop. */
@NullMarked
package com.example.shop.orders;
