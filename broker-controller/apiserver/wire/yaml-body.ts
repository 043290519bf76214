/** The YAML parser, with its limits. Its cost is bounded by the length of the text (`body-limits.ts`). */
import { parse } from 'yaml'

/**
 * The content of a YAML text, as its JSON would give it. Throws what the parser throws. Of keys that are given twice the last
 * one counts, as in Kubernetes: looking for them compares each key with all others.
 */
export function parseYamlBody(text: string): unknown {
  return parse(text, { uniqueKeys: false, maxAliasCount: 100 })
}
