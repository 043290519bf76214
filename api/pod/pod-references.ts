/** The objects that a pod names and cannot run without. */
import type { Pod } from '../pod.ts'

/** The secrets it needs in order to run, by name. */
export function secretsOf({ spec }: Pick<Pod, 'spec'>): ReadonlySet<string> {
  const containers = containersOf(spec)
  const volumes = spec.volumes ?? []
  return named([
    ...(spec.imagePullSecrets ?? []).map((secret) => secret.name),
    ...containers.flatMap((container) => (container.envFrom ?? []).map((from) => from.secretRef?.name)),
    ...containers.flatMap((container) => (container.env ?? []).map((one) => one.valueFrom?.secretKeyRef?.name)),
    ...volumes.map((volume) => volume.secret?.secretName),
    ...volumes.map((volume) => volume.csi?.nodePublishSecretRef?.name),
    ...volumes.flatMap((volume) => (volume.projected?.sources ?? []).map((source) => source.secret?.name)),
  ])
}

export function configMapsOf({ spec }: Pick<Pod, 'spec'>): ReadonlySet<string> {
  const containers = containersOf(spec)
  const volumes = spec.volumes ?? []
  return named([
    ...containers.flatMap((container) => (container.envFrom ?? []).map((from) => from.configMapRef?.name)),
    ...containers.flatMap((container) => (container.env ?? []).map((one) => one.valueFrom?.configMapKeyRef?.name)),
    ...volumes.map((volume) => volume.configMap?.name),
    ...volumes.flatMap((volume) => (volume.projected?.sources ?? []).map((source) => source.configMap?.name)),
  ])
}

/** The kinds of things beside secrets and config maps that it needs and that only an administrator may give. */
export function claimsOf({ spec }: Pick<Pod, 'spec'>): readonly string[] {
  const volumes = spec.volumes ?? []
  const sources = volumes.flatMap(({ projected }) => projected?.sources ?? [])
  return [
    ...(sources.some((source) => source.serviceAccountToken) ? ['service account tokens'] : []),
    ...(volumes.some(({ persistentVolumeClaim, ephemeral }) => persistentVolumeClaim ?? ephemeral)
      ? ['persistentvolumeclaims']
      : []),
    ...((spec.resourceClaims ?? []).length > 0 ? ['resourceclaims'] : []),
    ...(sources.some((source) => source.clusterTrustBundle) ? ['clustertrustbundles'] : []),
  ]
}

/** The audiences of the tokens that its volumes project; '' is that of the API. */
export function tokenAudiencesOf({ spec }: Pick<Pod, 'spec'>): ReadonlySet<string> {
  const sources = (spec.volumes ?? []).flatMap(({ projected }) => projected?.sources ?? [])
  return new Set(
    sources.flatMap(({ serviceAccountToken: token }) => (token === undefined ? [] : [token.audience ?? ''])),
  )
}

function named(names: readonly (string | undefined)[]): ReadonlySet<string> {
  return new Set(names.filter((name): name is string => name !== undefined && name !== ''))
}

function containersOf(spec: Pod['spec']) {
  return [...(spec.initContainers ?? []), ...spec.containers, ...(spec.ephemeralContainers ?? [])]
}
