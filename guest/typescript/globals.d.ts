// The globals of the sandbox that are not ECMAScript's own: what guest/js/prelude defines, and nothing else.
interface Console {
  assert(condition?: any, ...data: any[]): void;
  count(label?: string): void;
  countReset(label?: string): void;
  debug(...data: any[]): void;
  dir(item?: any, options?: any): void;
  error(...data: any[]): void;
  group(...data: any[]): void;
  groupCollapsed(...data: any[]): void;
  groupEnd(): void;
  info(...data: any[]): void;
  log(...data: any[]): void;
  table(data?: any, properties?: readonly string[]): void;
  time(label?: string): void;
  timeEnd(label?: string): void;
  timeLog(label?: string, ...data: any[]): void;
  trace(...data: any[]): void;
  warn(...data: any[]): void;
}
declare var console: Console;

declare function setTimeout(handler: (...values: any[]) => any, milliseconds?: number, ...values: any[]): number;
declare function setInterval(handler: (...values: any[]) => any, milliseconds?: number, ...values: any[]): number;
declare function setImmediate(handler: (...values: any[]) => any, ...values: any[]): number;
declare function clearTimeout(timer?: any): void;
declare function clearInterval(timer?: any): void;
declare function clearImmediate(timer?: any): void;
declare function queueMicrotask(task: () => void): void;
declare function structuredClone<T = any>(value: T): T;
declare function atob(data: string): string;
declare function btoa(data: string): string;

interface TextEncoder {
  readonly encoding: string;
  encode(input?: string): Uint8Array<ArrayBuffer>;
}
declare var TextEncoder: { prototype: TextEncoder; new (): TextEncoder };
interface TextDecoder {
  readonly encoding: string;
  readonly fatal: boolean;
  readonly ignoreBOM: boolean;
  decode(input?: ArrayBuffer | ArrayBufferView): string;
}
declare var TextDecoder: {
  prototype: TextDecoder;
  new (label?: string, options?: { fatal?: boolean; ignoreBOM?: boolean }): TextDecoder;
};

interface URLSearchParams extends Iterable<[string, string]> {
  readonly size: number;
  append(name: string, value: any): void;
  delete(name: string, value?: string): void;
  get(name: string): string | null;
  getAll(name: string): string[];
  has(name: string, value?: string): boolean;
  set(name: string, value: any): void;
  sort(): void;
  toString(): string;
  forEach(callback: (value: string, key: string, parent: URLSearchParams) => void, receiver?: any): void;
  entries(): IterableIterator<[string, string]>;
  keys(): IterableIterator<string>;
  values(): IterableIterator<string>;
}
declare var URLSearchParams: { prototype: URLSearchParams; new (init?: any): URLSearchParams };
interface URL {
  hash: string;
  host: string;
  hostname: string;
  href: string;
  readonly origin: string;
  password: string;
  pathname: string;
  port: string;
  protocol: string;
  search: string;
  readonly searchParams: URLSearchParams;
  username: string;
  toString(): string;
  toJSON(): string;
}
declare var URL: {
  prototype: URL;
  new (url: string | URL, base?: string | URL): URL;
  canParse(url: string | URL, base?: string | URL): boolean;
  parse(url: string | URL, base?: string | URL): URL | null;
};

declare var crypto: {
  randomUUID(): string;
  getRandomValues<T extends ArrayBufferView>(array: T): T;
};
declare var performance: { now(): number; readonly timeOrigin: number };

interface DOMException extends Error {
  readonly code: number;
}
declare var DOMException: { prototype: DOMException; new (message?: string, name?: string): DOMException };

interface ErrorConstructor {
  captureStackTrace(target: object, constructor?: Function): void;
  stackTraceLimit: number;
}
declare var InternalError: ErrorConstructor;

// ECMAScript that TypeScript's own library doesn't have yet.
interface Math { sumPrecise(values: Iterable<number>): number }
interface RegExpConstructor { escape(text: string): string }
interface IteratorConstructor { concat<T>(...parts: Iterable<T>[]): IteratorObject<T, undefined, unknown> }
interface Uint8Array<TArrayBuffer extends ArrayBufferLike = ArrayBufferLike> {
  toBase64(options?: { alphabet?: "base64" | "base64url"; omitPadding?: boolean }): string;
  toHex(): string;
}
interface Uint8ArrayConstructor {
  fromBase64(text: string, options?: any): Uint8Array<ArrayBuffer>;
  fromHex(text: string): Uint8Array<ArrayBuffer>;
}
interface Map<K, V> {
  getOrInsert(key: K, value: V): V;
  getOrInsertComputed(key: K, make: (key: K) => V): V;
  toJSON(): any;
}
interface Set<T> { toJSON(): any }
interface Error { toJSON(): any }

declare namespace NodeJS {
  interface Require {}
}
declare var require: NodeJS.Require;
