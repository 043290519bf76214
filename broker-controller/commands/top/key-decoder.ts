/** Bytes of a terminal → keys (ECMA-48, and xterm's sequences for the keys that move). */
import { StringDecoder } from 'node:string_decoder'
import type { Key, NamedKey } from './top-state.ts'

const escapeByte = '\x1b'

const sequences: { readonly [bytes: string]: NamedKey } = {
  '[A': 'up',
  '[B': 'down',
  '[C': 'right',
  '[D': 'left',
  OA: 'up',
  OB: 'down',
  OC: 'right',
  OD: 'left',
  '[5~': 'page-up',
  '[6~': 'page-down',
  '[H': 'home',
  OH: 'home',
  '[1~': 'home',
  '[F': 'end',
  OF: 'end',
  '[4~': 'end',
  '[Z': 'back-tab',
}

const controls: { readonly [character: string]: NamedKey } = {
  '\t': 'tab',
  '\r': 'enter',
  '\n': 'enter',
  '\x7f': 'backspace',
  '\b': 'backspace',
  '\x03': 'interrupt',
  '\x1a': 'suspend',
  '\x0c': 'redraw',
}

/** An escape sequence or one character. A sequence that is not known is left out. */
const one = new RegExp(`${escapeByte}(?:\\[[0-?]*[ -/]*[@-~]|O[@-~])|\\p{Cc}|\\P{Cc}+`, 'gu')

/**
 * The keys of each piece that a terminal sends. A terminal sends a sequence at once, so an escape character without one is the key
 * Escape; of a pasted text every character counts.
 */
export function keyDecoder(): (piece: Uint8Array) => readonly Key[] {
  const decoder = new StringDecoder('utf8')
  return (piece) => (decoder.write(Buffer.from(piece)).match(one) ?? []).flatMap((part) => keyOf(part) ?? [])
}

/** undefined: it has no meaning here. */
function keyOf(part: string): Key | undefined {
  if (part === escapeByte) return { key: 'escape' }
  if (part.startsWith(escapeByte)) {
    const key = sequences[part.slice(1)]
    return key === undefined ? undefined : { key }
  }
  const control = controls[part]
  if (control !== undefined) return { key: control }
  return /^\p{Cc}/u.test(part) ? undefined : { key: 'text', text: part }
}
