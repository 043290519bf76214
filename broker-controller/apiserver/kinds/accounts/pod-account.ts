/**
 * The service account of a new pod: which one it has, and what it gets of it (plugin/pkg/admission/serviceaccount/admission.go).
 */
import type { ServiceAccount } from '../../../../api/access/service-account.ts'
import {
  certificateKey,
  defaultAccountName,
  rootCertificatesName,
} from '../../../../api/access/service-account-names.ts'
import { secretsOf } from '../../../../api/pod/pod-references.ts'
import { type Container, mirrorAnnotation, type Pod, type PodSpec, type Volume } from '../../../../api/pod.ts'
import type { Admitted } from '../priority.ts'

/** Seven seconds more than an hour: the tokens that are mounted by admission are recognised by it. */
export const podTokenSeconds = 3607
/** The beginning of the name of the volume with the token. */
export const tokenVolumePrefix = 'kube-api-access-'
const mountPath = '/var/run/secrets/kubernetes.io/serviceaccount'
const enforcedAnnotation = 'kubernetes.io/enforce-mountable-secrets'
/** What Go's strconv.ParseBool takes for true. */
const trueTexts = ['1', 't', 'T', 'true', 'TRUE', 'True']

/** A static pod is not changed by admission. */
export function isMirror({ metadata }: Pick<Pod, 'metadata'>): boolean {
  return metadata.annotations?.[mirrorAnnotation] !== undefined
}

/** The name of the account that the pod asks for, or has without asking. */
export function accountNameOf({ spec }: Pick<Pod, 'spec'>): string {
  return spec.serviceAccountName || spec.serviceAccount || defaultAccountName
}

/** The new pod as it is admitted; a mirror pod stays as it is. `account`: undefined when there is none of its name. */
export function admitAccount(pod: Pod, account: ServiceAccount | undefined, volumeName: string): Admitted<Pod> {
  const because = isMirror(pod) ? mirrorProblem(pod) : account ? unlistedSecret(pod, account) : missing(pod)
  if (because !== undefined) return { ok: false, because }
  return { ok: true, object: isMirror(pod) || account === undefined ? pod : withAccount(pod, account, volumeName) }
}

function missing(pod: Pod): string {
  const name = accountNameOf(pod)
  const found = `serviceaccount ${JSON.stringify(name)} not found`
  return `error looking up service account ${pod.metadata.namespace}/${name}: ${found}`
}

/** Why the mirror pod is forbidden; undefined when it is not. */
export function mirrorProblem({ spec }: Pick<Pod, 'spec'>): string | undefined {
  if (spec.serviceAccountName || spec.serviceAccount) return 'a mirror pod may not reference service accounts'
  if (secretsOf({ spec }).size > 0) return 'a mirror pod may not reference secrets'
  const sources = (spec.volumes ?? []).flatMap(({ projected }) => projected?.sources ?? [])
  const hasToken = sources.some(({ serviceAccountToken }) => serviceAccountToken !== undefined)
  return hasToken ? 'a mirror pod may not use ServiceAccountToken volume projections' : undefined
}

/** The new pod with its account: its token and the secrets for its images. `volumeName`: of a volume that is added. */
export function withAccount(pod: Pod, account: ServiceAccount, volumeName: string): Pod {
  const name = accountNameOf(pod)
  const { imagePullSecrets = [] } = pod.spec
  const spec: PodSpec = {
    ...(isMounted(pod, account) ? withToken(pod.spec, volumeName) : pod.spec),
    serviceAccountName: name,
    serviceAccount: name,
  }
  const given = (account.imagePullSecrets ?? []).map((secret) => ({ ...secret }))
  return {
    ...pod,
    spec: imagePullSecrets.length > 0 || given.length === 0 ? spec : { ...spec, imagePullSecrets: given },
  }
}

function isMounted({ spec }: Pod, account: ServiceAccount): boolean {
  return spec.automountServiceAccountToken ?? account.automountServiceAccountToken ?? true
}

function withToken(spec: PodSpec, volumeName: string): PodSpec {
  const { volumes = [], containers, initContainers } = spec
  const present = volumes.find(({ name }) => name.startsWith(tokenVolumePrefix))
  const mount = { name: present?.name ?? volumeName, readOnly: true, mountPath }
  const hasOwn = ({ volumeMounts = [] }: Container) => volumeMounts.some((one) => one.mountPath === mountPath)
  const withMount = (container: Container): Container =>
    hasOwn(container) ? container : { ...container, volumeMounts: [...(container.volumeMounts ?? []), mount] }
  if ([...(initContainers ?? []), ...containers].every(hasOwn)) return spec
  return {
    ...spec,
    ...(present === undefined && { volumes: [...volumes, tokenVolume(volumeName)] }),
    ...(initContainers && { initContainers: initContainers.map(withMount) }),
    containers: containers.map(withMount),
  }
}

function tokenVolume(name: string): Volume {
  const token = { path: 'token', expirationSeconds: podTokenSeconds }
  const certificates = { name: rootCertificatesName, items: [{ key: certificateKey, path: certificateKey }] }
  const namespace = { path: 'namespace', fieldRef: { apiVersion: 'v1', fieldPath: 'metadata.namespace' } }
  return {
    name,
    projected: {
      defaultMode: 0o644,
      sources: [{ serviceAccountToken: token }, { configMap: certificates }, { downwardAPI: { items: [namespace] } }],
    },
  }
}

/** Why the pod may not use a Secret that its account does not list, where the account enforces that; undefined when it may. */
export function unlistedSecret({ spec }: Pick<Pod, 'spec'>, account: ServiceAccount): string | undefined {
  const { name = '', annotations = {} } = account.metadata
  if (!trueTexts.includes(annotations[enforcedAnnotation] ?? '')) return undefined
  const listed = new Set((account.secrets ?? []).map((secret) => secret.name))
  const pullable = new Set((account.imagePullSecrets ?? []).map((secret) => secret.name))
  const because = `is not allowed because service account ${name} does not reference that`
  const [unlisted] = [
    ...(spec.volumes ?? []).flatMap(({ secret }) =>
      secret && !listed.has(secret.secretName ?? '')
        ? [`volume with secret.secretName="${secret.secretName ?? ''}" ${because} secret`]
        : [],
    ),
    ...[
      ...(spec.initContainers ?? []).map((container) => ({ container, what: 'init container' })),
      ...spec.containers.map((container) => ({ container, what: 'container' })),
    ].flatMap(({ container, what }) =>
      secretUses(container).flatMap(({ how, secret }) =>
        listed.has(secret)
          ? []
          : [`${what} ${container.name} with ${how} referencing secret.secretName="${secret}" ${because} secret`],
      ),
    ),
    ...(spec.imagePullSecrets ?? []).flatMap((secret, index) =>
      pullable.has(secret.name) ? [] : [`imagePullSecrets[${index}].name="${secret.name}" ${because} imagePullSecret`],
    ),
  ]
  return unlisted
}

/** The same of the ephemeral containers of a pod (limitEphemeralContainerSecretReferences). `account`: undefined when there is none. */
export function unlistedEphemeralSecret(pod: Pod, account: ServiceAccount | undefined): string | undefined {
  if (account === undefined) return missing(pod)
  const { name = '', annotations = {} } = account.metadata
  if (!trueTexts.includes(annotations[enforcedAnnotation] ?? '')) return undefined
  const listed = new Set((account.secrets ?? []).map((secret) => secret.name))
  const uses = (pod.spec.ephemeralContainers ?? []).flatMap((container) =>
    secretUses(container).map((use) => ({ ...use, of: container.name })),
  )
  const found = uses.find(({ secret }) => !listed.has(secret))
  if (found === undefined) return undefined
  const what = `ephemeral container ${found.of} with ${found.how} referencing secret.secretName="${found.secret}"`
  return `${what} is not allowed because service account ${name} does not reference that secret`
}

function secretUses({
  env = [],
  envFrom = [],
}: Container): readonly { readonly how: string; readonly secret: string }[] {
  return [
    ...env.flatMap(({ name, valueFrom }) => {
      const reference = valueFrom?.secretKeyRef
      return reference ? [{ how: `envVar ${name}`, secret: reference.name ?? '' }] : []
    }),
    ...envFrom.flatMap(({ secretRef }) => (secretRef ? [{ how: 'envFrom', secret: secretRef.name ?? '' }] : [])),
  ]
}
