CC := gcc
OBJS = a.o \
  b.o: \
  c.o
.PHONY: all test

# Builds everything.
all: $(OBJS) ## the default
	$(CC) -o shop $^

test lint:: all
	./run-tests: verbose
	@echo done

define RELEASE_NOTES
target: in a text
endef

%.o: %.c
	$(CC) -c $<

export PATH := bin:$(PATH)
