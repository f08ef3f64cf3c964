// Orders: what a customer asked for.
#include "order.hpp"
#include <map>
#include <memory>

namespace fs = std::filesystem;
using namespace std::chrono;
using std::string;

#define SHOP_MAX 50
#define SHOP_CHECK(what) \
    do { if (!(what)) fail(#what); } while (0)

namespace shop::orders {

/// How an order is known.
using Id = unsigned long;
template <typename T> using Shared = std::shared_ptr<T>;
typedef int (*Visitor)(const Line& line, void* context);
typedef struct raw_line { int number; } raw_line_t;

constexpr int kMaxLines = 50;
const std::string kCurrencies[] = {
    "EUR",
};
static int counter{0};
Registry* registry = nullptr;

enum class State : unsigned char { Open, Paid };

template <typename T>
concept Priced = requires(T each) { each.price(); };

namespace {
int hidden(int x) { return x + 1; }
}  // namespace

class Ledger;

/**
 * An order with its lines.
 *
 * It is open until it is paid.
 */
template <typename T, typename Alloc = std::allocator<T>>
class Order final : public Base<T>, private Tagged {
    int secret();

public:
    static constexpr int kStart = 1;
    using value_type = T;
    enum class Step { First, Last };

    Order();
    /// Takes its lines from a file.
    explicit Order(const fs::path& file, int limit = kMaxLines)
        : lines_{load(file)}, limit_(limit) {}
    Order(const Order&) = delete;
    virtual ~Order() = default;

    virtual T total(int from,
                    int to) const = 0;
    bool operator==(const Order& other) const { return id_ == other.id_; }
    operator bool() const;
    T& first() { return lines_.front(); }
    template <class Check> void each(Check check) {
        for (auto& line : lines_) check(line);
        this->template visit<T>(1);
        detail::inner::sort<T>(lines_);
    }
    [[nodiscard]] static Shared<Order> open(Id id);

    struct Line {
        T price;
        double sum() const { return price; }
    };

protected:
    void reset() noexcept;

private:
    struct Hidden { int row; };
    std::vector<Line> lines_;
    int limit_, id_ = 0;
};

template <typename T, typename Alloc>
auto Order<T, Alloc>::open(Id id) -> Shared<Order> {
    struct Local { int at; };
    SHOP_CHECK(id > 0);
    auto made = std::make_shared<Order<T>>(id);
    Ledger::instance().add(*made);
    registry->note(new Entry(id));
    return made;
}

template <> struct Hash<Id> {
    int operator()(Id id) const;
};

// The state as people read it.
std::ostream& operator<<(std::ostream& out, const State& state) { return out << name_of(state); }

Ledger::Ledger(int size) : size_(size)
{
    grow();
}

Ledger::~Ledger() {}

int* shop::Ledger::Page::deep(int at) { return &rows[at]; }

int Ledger::count = 0;

union Bits { int whole; char bytes[4]; };

auto größe = [](const Line& line) { return line.size(); };

}  // namespace shop::orders

extern "C" int shop_open(const char* name);
SHOP_API int shop_close(int handle);
static int later(void);

int main(int argc, char** argv) try {
    return shop::run(argc, argv);
} catch (const shop::Failure& failure) {
    return failure.code();
}
