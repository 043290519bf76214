/** A manifest in a file → a static pod, or all problems of the manifest. */
import { createHash } from 'node:crypto'
import { decode } from '../../../api/decode.ts'
import { claimsOf, configMapsOf, secretsOf } from '../../../api/pod/pod-references.ts'
import { configHashAnnotation, configSeenAnnotation, configSourceAnnotation } from '../../../api/pod/static-pod.ts'
import { type Pod, PodSchema } from '../../../api/pod.ts'
import { forbidden, type Problem, problemText } from '../../../api/problem.ts'
import { resources } from '../../../api/resources.ts'
import { isObject } from '../../../api/text/json.ts'
import { earlyProblems } from '../../../api/validation/ephemeral-validation.ts'
import { metadataProblems } from '../../../api/validation/metadata-validation.ts'
import { withPodDefaults } from '../../../api/validation/pod-defaults.ts'
import { containerCount, containerExcess, podProblems } from '../../../api/validation/pod-validation.ts'
import { unsupportedFields } from '../../../api/validation/unsupported-fields.ts'
import { rfc3339 } from '../../../daemon/clock.ts'

export type StaticPod =
  | { readonly ok: true; readonly pod: Pod }
  /** One sentence each, with the field. */
  | { readonly ok: false; readonly problems: readonly string[] }

export type ManifestFacts = { readonly path: string; readonly nodeName: string; readonly nowWallMs: number }

/**
 * Appends the node's name to the pod's name, and sets a hash of the file as UID (applyDefaults in pkg/kubelet/config/common.go).
 */
export function staticPod(content: unknown, facts: ManifestFacts): StaticPod {
  const { apiVersion, kind } = isObject(content) ? content : {}
  if (apiVersion !== 'v1' || kind !== 'Pod') {
    const found = kind === undefined ? 'nothing that names its kind' : `a ${kind} of ${apiVersion}`
    return { ok: false, problems: [`it holds ${found}: a file holds one v1 Pod`] }
  }
  const decoded = decode(PodSchema, content)
  const unknown = decoded.unknownFields.map((field) => `${field}: Unknown field`)
  if (!decoded.ok) return { ok: false, problems: [...decoded.problems.map(problemText), ...unknown] }
  const pod = made(decoded.value, hashOf(content, facts), facts)
  const problems = [
    ...metadataProblems(resources.pods, pod.metadata),
    ...podProblems(pod),
    ...containerExcess('spec.containers', containerCount(pod.spec)),
    ...earlyProblems('spec', pod.spec),
    ...unsupportedFields('spec', pod.spec),
    ...dependencies(pod),
  ].map(problemText)
  return problems.length + unknown.length === 0 ? { ok: true, pod } : { ok: false, problems: [...problems, ...unknown] }
}

function made({ apiVersion, kind, metadata, spec }: Pod, hash: string, { nodeName, nowWallMs }: ManifestFacts): Pod {
  const { name = '', namespace, labels, annotations } = metadata
  return {
    apiVersion,
    kind,
    metadata: {
      // A pod without a name stays without one: the node's name alone identifies nothing.
      name: name === '' ? '' : `${name}-${nodeName}`,
      namespace: namespace || 'default',
      uid: hash,
      ...(labels && { labels }),
      annotations: {
        ...annotations,
        [configSourceAnnotation]: 'file',
        [configHashAnnotation]: hash,
        [configSeenAnnotation]: rfc3339(nowWallMs),
      },
    },
    spec: withPodDefaults({
      ...spec,
      nodeName,
      // The pod is not evicted by taints: it exists as long as its file (applyDefaults in pkg/kubelet/config/common.go).
      tolerations: [...(spec.tolerations ?? []), { operator: 'Exists', effect: 'NoExecute' }],
    }),
  }
}

/** A static pod must run without the API. */
function dependencies(pod: Pod): readonly Problem[] {
  const because = (what: string) =>
    forbidden('spec', `names ${what}: a static pod runs without the API, so give it what it needs by hostPath or env`)
  const { serviceAccountName = '', runtimeClassName = '' } = pod.spec
  return [
    ...[...secretsOf(pod)].map((name) => because(`the Secret ${name}`)),
    ...[...configMapsOf(pod)].map((name) => because(`the ConfigMap ${name}`)),
    ...(serviceAccountName === '' ? [] : [because(`the ServiceAccount ${serviceAccountName}`)]),
    ...claimsOf(pod).map(because),
    ...(runtimeClassName === '' ? [] : [because(`the RuntimeClass ${runtimeClassName}`)]),
  ]
}

/** The hash covers the file's content, not the decoded pod: an agent with other defaults computes the same UID. */
function hashOf(content: unknown, { path, nodeName }: ManifestFacts): string {
  const written = JSON.stringify(content, (_, value) => (isObject(value) ? inOrder(value) : value))
  return createHash('sha256').update(`${written}\n${nodeName}\n${path}`).digest('hex').slice(0, 32)
}

function inOrder(object: { readonly [name: string]: unknown }): unknown {
  return Object.fromEntries(Object.entries(object).sort(([a], [b]) => (a < b ? -1 : 1)))
}
