// React is the host's, of whatever version from 16.8 on: nothing of it is bundled, and only what all versions have is used.

export interface Element {
    readonly type: unknown;
}

export type Child = Element | string | number | false | null | undefined | readonly Child[];

export type Component<Props> = (props: Props) => Element | null;

interface React {
    createElement(type: unknown, props: unknown, ...children: Child[]): Element;
    readonly Fragment: unknown;
    useState<T>(initial: T | (() => T)): [T, (next: T | ((before: T) => T)) => void];
    useEffect(effect: () => void | (() => void), dependencies?: readonly unknown[]): void;
    useMemo<T>(make: () => T, dependencies: readonly unknown[]): T;
    useRef<T>(initial: T): {current: T};
}

declare global {
    interface Window {
        readonly React: React;
    }
}

/** The host's React, which it may set only after this script has run. */
export function react(): React {
    return window.React;
}

/** An element of a page. */
export function h(tag: string, props: Readonly<Record<string, unknown>> | null, ...children: Child[]): Element {
    return react().createElement(tag, props, ...children);
}

/** An element that a component makes. */
export function c<Props>(component: Component<Props>, props: Props & {readonly key?: string}): Element {
    return react().createElement(component, props);
}

/** Keeps the time in milliseconds, and moves it on so often that ages stay true. */
export function useNow(): number {
    const {useEffect, useState} = react();
    const [now, setNow] = useState(() => Date.now());
    useEffect(() => {
        const timer = setInterval(() => setNow(Date.now()), 15_000);
        return () => clearInterval(timer);
    }, []);
    return now;
}
