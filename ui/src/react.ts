// Wraps the React of the page, 16.8 or newer. The extension bundles no React, and uses only features of all these versions.

export interface Element {
    readonly type: unknown;
}

export type Child = Element | string | number | false | null | undefined | readonly Child[];

export type Component<Props> = (props: Props) => Element | null;

interface React {
    createElement(type: unknown, props: unknown, ...children: Child[]): Element;
    readonly Fragment: unknown;
    useState<T>(initial: T | (() => T)): [T, (next: T | ((current: T) => T)) => void];
    useEffect(effect: () => void | (() => void), dependencies?: readonly unknown[]): void;
    useMemo<T>(create: () => T, dependencies: readonly unknown[]): T;
    useRef<T>(initial: T): {current: T};
}

declare global {
    interface Window {
        readonly React: React;
    }
}

/** Returns the React of the page, which may set it after this script ran. */
export function react(): React {
    return window.React;
}

/** Creates an HTML element. */
export function h(tag: string, props: Readonly<Record<string, unknown>> | null, ...children: Child[]): Element {
    return react().createElement(tag, props, ...children);
}

/** Creates an element of a component. */
export function c<Props>(component: Component<Props>, props: Props & {readonly key?: string}): Element {
    return react().createElement(component, props);
}

/** Returns the current time in milliseconds, and renders again every 15 seconds. */
export function useNow(): number {
    const {useEffect, useState} = react();
    const [now, setNow] = useState(() => Date.now());
    useEffect(() => {
        const timer = setInterval(() => setNow(Date.now()), 15_000);
        return () => clearInterval(timer);
    }, []);
    return now;
}
