/** The YAML reader of request bodies. The length of the text is limited before (`body-limits.ts`). */
import { readYaml } from '../../../daemon/yaml/yaml-reader.ts'

/** The content of a YAML text, as its JSON would give it. Throws what the reader throws. Of keys that are given twice the last counts, as in Kubernetes. */
export function parseYamlBody(text: string): unknown {
  return readYaml(text, { allowDuplicates: true })
}
