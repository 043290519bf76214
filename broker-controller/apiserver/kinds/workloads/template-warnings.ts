/** Warnings about the pod template of a workload (WarningsOnCreate and WarningsOnUpdate below pkg/registry). */
import type { ObjectMeta } from '../../../../api/meta.ts'
import type { PodTemplateSpec } from '../../../../api/pod.ts'
import { podNamesWarnings } from '../../../../api/warnings/name-warnings.ts'
import { podTemplateWarnings } from '../../../../api/warnings/pod-warnings.ts'
import { equalJSON } from '../../../store/equal-json.ts'

type Templated = { readonly metadata: ObjectMeta; readonly spec: { readonly template?: PodTemplateSpec | undefined } }

/** For a kind whose pods have names that begin with that of the object: a change is looked at where it is one of the specification. */
export const namedTemplateWarnings = {
  warningsOnCreate: (now: Templated) => [...podNamesWarnings(now.metadata.name ?? ''), ...templateWarnings(now)],
  warningsOnUpdate: (old: Templated, now: Templated) => (equalJSON(old.spec, now.spec) ? [] : templateWarnings(now)),
}

/** Pod Security warns of what it would refuse of the pods. */
export const templateSecurity = { judges: 'template', parts: ({ spec }: Templated) => spec.template } as const

/** Warnings about the template at `spec.template`. */
export function templateWarnings({ spec: { template } }: Templated): readonly string[] {
  return template === undefined ? [] : podTemplateWarnings('spec.template', template)
}
