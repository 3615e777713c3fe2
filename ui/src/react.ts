// Uses the host's React, 16.8 or newer: none is bundled, and only features of all versions are used.

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

/** Returns the host's React, which the host may set after this script ran. */
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

/** Returns the time in milliseconds, and updates it often enough for ages. */
export function useNow(): number {
    const {useEffect, useState} = react();
    const [now, setNow] = useState(() => Date.now());
    useEffect(() => {
        const timer = setInterval(() => setNow(Date.now()), 15_000);
        return () => clearInterval(timer);
    }, []);
    return now;
}
