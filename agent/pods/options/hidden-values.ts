/** Texts of the container engine without the values of variables, which may be those of Secrets. */
import { quotedByGo } from './go-quote.ts'

type Variable = { readonly name: string; readonly value: string }

/** Shorter ones are hidden behind their name only: they are in many texts by chance, and hiding them there would show what they are. */
const leastLength = 4

/**
 * `text` with each value, also one that Go or JSON has quoted, replaced by "[value of NAME]". In one pass: what is shown in place of one
 * value may contain another.
 */
export function withoutValues(text: string, env: readonly Variable[]): string {
  const shown = new Map<string, string>()
  for (const { name, value } of env) {
    if (value === '') continue
    for (const written of new Set([value, JSON.stringify(value).slice(1, -1), quotedByGo(value)])) {
      shown.set(`${name}=${written}`, `${name}=[value of ${name}]`)
      if (value.length >= leastLength && !shown.has(written)) shown.set(written, `[value of ${name}]`)
    }
  }
  // The longest first: one value may be a part of another.
  const found = [...shown.keys()].filter((one) => text.includes(one)).sort((a, b) => b.length - a.length)
  if (found.length === 0) return text
  return text.replace(new RegExp(found.map(literal).join('|'), 'g'), (one) => shown.get(one) ?? '')
}

function literal(text: string): string {
  return text.replace(/[.*+?^${}()|[\]\\/-]/g, '\\$&')
}
