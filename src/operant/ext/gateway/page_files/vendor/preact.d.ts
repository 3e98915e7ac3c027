// What this page uses of Preact and htm.
export type Node = any;
export function html(strings: TemplateStringsArray, ...values: any[]): any;
export function h(type: any, props: any, ...children: any[]): any;
export function render(node: any, parent: Element): void;
export class Component<P = any, S = any> {
  props: P;
  state: S;
  setState(change: any): void;
  forceUpdate(): void;
}
export function useState<T>(start: T | (() => T)): [T, (next: T | ((before: T) => T)) => void];
export function useEffect(run: () => void | (() => void), on?: any[]): void;
export function useLayoutEffect(run: () => void | (() => void), on?: any[]): void;
export function useRef<T>(start: T): { current: T };
export function useMemo<T>(make: () => T, on: any[]): T;
export function useCallback<T>(call: T, on: any[]): T;
