/** The runtime of the container engine that runs a pod, from its RuntimeClass. */
import type { Pod } from '../../../api/pod.ts'
import type { DesiredMessage } from '../../../api/topics.ts'

export type RuntimeClasses = NonNullable<DesiredMessage['runtimeClasses']>

export type RuntimeHandler =
  /** undefined: the default of the engine. */
  | { readonly ok: true; readonly handler: string | undefined }
  /** The fleet has no such class. */
  | { readonly ok: false; readonly message: string }

/** LookupRuntimeHandler in pkg/kubelet/runtimeclass/runtimeclass_manager.go. */
export function runtimeHandler({ spec }: Pod, classes: RuntimeClasses): RuntimeHandler {
  const { runtimeClassName = '' } = spec
  if (runtimeClassName === '') return { ok: true, handler: undefined }
  const found = classes.find(({ name }) => name === runtimeClassName)
  if (found !== undefined) return { ok: true, handler: found.handler }
  return { ok: false, message: `runtimeclass.node.k8s.io "${runtimeClassName}" not found` }
}
