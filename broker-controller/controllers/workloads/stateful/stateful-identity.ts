/** Who a pod of a StatefulSet is (pkg/controller/statefulset/stateful_set_utils.go). Pure. */
import type { Pod, PodTemplateSpec } from '../../../../api/pod.ts'
import { podNameLabel, type StatefulSet } from '../../../../api/workloads/stateful-set.ts'
import type { AnyStored } from '../../../store/store.ts'
import { revisionLabel } from '../history/revisions.ts'
import { podOfTemplate } from '../pod-control.ts'

const podIndexLabel = 'apps.kubernetes.io/pod-index'

/** The number at the end of the pod's name, if the rest is the name of the set; undefined: it is not a pod of that. */
export function ordinalOf(set: string, pod: string): number | undefined {
  const [, parent, digits = ''] = /^(.*)-([0-9]+)$/s.exec(pod) ?? []
  const ordinal = Number(digits)
  // Another way to write a number, such as 007, is another name.
  return parent === set && Number.isSafeInteger(ordinal) && String(ordinal) === digits ? ordinal : undefined
}

/** The ordinals that the set wants, from `first` to before `end`. */
export function ordinalRange({ spec }: Pick<StatefulSet, 'spec'>): { readonly first: number; readonly end: number } {
  const first = spec.ordinals?.start ?? 0
  return { first, end: first + (spec.replicas ?? 1) }
}

/** The name of the revision that the pod was made from; '': none. */
export function revisionOf({ metadata }: Pod): string {
  return metadata.labels?.[revisionLabel] ?? ''
}

/** A new pod with its name, labels, host name and domain (newStatefulSetPod), without its claims. */
export function statefulPod(
  set: AnyStored & StatefulSet,
  ordinal: number,
  { name: revision, template }: { readonly name: string; readonly template: PodTemplateSpec },
): Pod {
  const name = `${set.metadata.name}-${ordinal}`
  const pod = podOfTemplate(set, template)
  const labels = { ...pod.metadata.labels, ...identityLabels(name, ordinal), [revisionLabel]: revision }
  const subdomain = set.spec.serviceName ?? ''
  return {
    ...pod,
    metadata: { ...pod.metadata, name, labels },
    spec: { ...pod.spec, hostname: name, ...(subdomain !== '' && { subdomain }) },
  }
}

function identityLabels(name: string, ordinal: number) {
  return { [podNameLabel]: name, [podIndexLabel]: String(ordinal) }
}

/** Whether the pod is known by the label of its name, which Services for single pods select. */
export function hasIdentity({ metadata }: Pod): boolean {
  return metadata.labels?.[podNameLabel] === metadata.name
}

/** The pod with the labels of its name and ordinal. */
export function withIdentity<P extends Pod>(pod: P, ordinal: number): P {
  const labels = { ...pod.metadata.labels, ...identityLabels(pod.metadata.name ?? '', ordinal) }
  return { ...pod, metadata: { ...pod.metadata, labels } }
}
