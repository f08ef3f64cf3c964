using Shop;

namespace Shop.Tools
{
    namespace Inner
    {
        public class Report { }
    }

#if DEBUG
    /// <summary>Only for developers.</summary>
    internal class Probe { }
#endif

    #region Old
    public class Old { public static void Run() => Inner.Report.Print(); }
    #endregion
}
