cmake_minimum_required(VERSION 3.20)
project(shop)

# Adds a plugin.
function(shop_plugin name)
  add_library(${name} MODULE)
endfunction()

add_executable(shop
  main.cpp
  order.cpp
)
add_test(NAME orders COMMAND shop --test)

macro(shop_log text)
  message(STATUS ${text})
endmacro()
