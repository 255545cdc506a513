/* SPDX-License-Identifier: MIT */
/* A C++ program of a user: exits 0 if the library has the version that is its argument. */
#include <latchkey/latchkey.h>

#include <iostream>
#include <string>

int main(int argc, char **argv)
{
    std::cout << "C++: " << lk_version() << '\n';
    return argc == 2 && std::string(lk_version()) == argv[1] ? 0 : 1;
}
