// what scrolls sideways can be reached with the keyboard; the theme wraps tables when it has loaded
const scrolling = ".md-typeset__scrollwrap:not([tabindex]), p:has(> img[src*='.svg']):not([tabindex])";
const reachable = () => document.querySelectorAll(scrolling).forEach((one) => { one.tabIndex = 0; });
new MutationObserver(reachable).observe(document.documentElement, { childList: true, subtree: true });
