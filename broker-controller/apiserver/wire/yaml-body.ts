/** The YAML reader of request bodies. The length of the text is limited before (`body-limits.ts`). */
import { readYaml } from '../../../daemon/yaml/yaml-reader.ts'

/** `onDuplicate`: called for each key that is given again, with a sentence of go-yaml. */
export type YamlParser = (text: string, onDuplicate?: (sentence: string) => void) => unknown

/** The content of a YAML text, as its JSON would give it. Throws what the reader throws. Of keys that are given twice the last counts, as in Kubernetes. */
export const parseYamlBody: YamlParser = (text, onDuplicate) =>
  readYaml(text, { allowDuplicates: true, ...(onDuplicate !== undefined && { onDuplicate }) })
