/** Validates the volumes of pods that are claims (validatePersistentClaimVolumeSource, validateEphemeralVolumeSource of Kubernetes), and their use as devices. */
import { dnsSubdomainProblem } from '../names.ts'
import type { Container, Pod, PodSpec, Volume } from '../pod.ts'
import { forbidden, invalid, notFoundValue, type Problem, required } from '../problem.ts'
import { annotationProblems, labelProblems } from '../validation/metadata-validation.ts'
import { repeatedPlaces } from '../validation/repeated.ts'
import { claimSpecProblems } from './claim-spec-problems.ts'
import { claimsOfPod } from './pod-claims.ts'

/** `at`: the path of the volume. */
export function claimVolumeProblems(at: string, { persistentVolumeClaim, ephemeral }: Volume): readonly Problem[] {
  const isUnnamed = persistentVolumeClaim?.claimName === ''
  return [
    ...(isUnnamed ? [required(`${at}.persistentVolumeClaim.claimName`)] : []),
    ...(ephemeral === undefined ? [] : templateProblems(`${at}.ephemeral.volumeClaimTemplate`, ephemeral)),
  ]
}

function templateProblems(
  at: string,
  { volumeClaimTemplate: template }: NonNullable<Volume['ephemeral']>,
): readonly Problem[] {
  if (template === undefined) return [required(at)]
  const { labels, annotations, ...others } = template.metadata ?? {}
  return [
    ...annotationProblems(`${at}.metadata.annotations`, annotations),
    ...labelProblems(`${at}.metadata.labels`, labels),
    ...Object.entries(others)
      .filter(([, value]) => value !== undefined && value !== '')
      .map(([name]) => forbidden(`${at}.metadata.${name}`, 'cannot be set')),
    ...claimSpecProblems(`${at}.spec`, template.spec ?? {}),
  ]
}

/** What only a pod with a name can have wrong: the names of the claims that are made for it. */
export function podClaimProblems(pod: Pod): readonly Problem[] {
  const made = claimsOfPod(pod).filter(({ isEphemeral }) => isEphemeral)
  const names = new Set(made.map(({ name }) => name))
  return (pod.spec.volumes ?? []).flatMap(({ name: volume, persistentVolumeClaim }, index) => {
    const at = `spec.volumes[${index}]`
    const { claimName = '' } = persistentVolumeClaim ?? {}
    const claim = made.find((one) => one.volume === volume)
    const wrong = claim && dnsSubdomainProblem(claim.name)
    return [
      ...(names.has(claimName)
        ? [
            invalid(
              `${at}.persistentVolumeClaim.claimName`,
              claimName,
              'must not reference a PVC that gets created for an ephemeral volume',
            ),
          ]
        : []),
      ...(claim && wrong ? [invalid(`${at}.name`, volume, `PVC name "${claim.name}": ${wrong}`)] : []),
    ]
  })
}

/**
 * The block devices of the container at `field`, and what its mounts have in common with them (ValidateVolumeDevices and ValidateVolumeMounts).
 */
export function devicesProblems(
  field: string,
  { volumeDevices = [], volumeMounts = [] }: Pick<Container, 'volumeDevices' | 'volumeMounts'>,
  { volumes = [] }: Pick<PodSpec, 'volumes'>,
): readonly Problem[] {
  if (volumeDevices.length === 0) return []
  const isClaim = new Map(
    volumes.map((one) => [one.name, one.persistentVolumeClaim !== undefined || one.ephemeral !== undefined]),
  )
  const repeated = {
    names: repeatedPlaces(volumeDevices.map(({ name }) => name)),
    paths: repeatedPlaces(volumeDevices.map(({ devicePath }) => devicePath)),
  }
  const mounted = {
    names: new Set(volumeMounts.map(({ name }) => name)),
    paths: new Set(volumeMounts.map(({ mountPath }) => mountPath)),
  }
  const ofDevices = volumeDevices.flatMap(({ name, devicePath }, index): readonly Problem[] => {
    const at = `${field}.volumeDevices[${index}]`
    const wrongName = (because: string) => [invalid(`${at}.name`, name, because)]
    const wrongPath = (because: string) => [invalid(`${at}.devicePath`, devicePath, because)]
    const onlyClaims = 'can only use volume source type of PersistentVolumeClaim or Ephemeral for block mode'
    return [
      ...(name === '' ? [required(`${at}.name`)] : []),
      ...(repeated.names.has(index) ? wrongName('must be unique') : []),
      ...(isClaim.get(name) === false ? wrongName(onlyClaims) : []),
      ...(isClaim.has(name) ? [] : [notFoundValue(`${at}.name`, name)]),
      ...(devicePath === '' ? [required(`${at}.devicePath`)] : []),
      ...(repeated.paths.has(index) ? wrongPath('must be unique') : []),
      ...(devicePath.split('/').includes('..') ? wrongPath("can not contain backsteps ('..')") : []),
      ...(mounted.names.has(name) ? wrongName('must not already exist in volumeMounts') : []),
      ...(mounted.paths.has(devicePath) ? wrongPath('must not already exist as a path in volumeMounts') : []),
    ]
  })
  const devices = {
    names: new Set(volumeDevices.map(({ name }) => name)),
    paths: new Set(volumeDevices.map(({ devicePath }) => devicePath)),
  }
  const ofMounts = volumeMounts.flatMap(({ name, mountPath }, index): readonly Problem[] => {
    const at = `${field}.volumeMounts[${index}]`
    return [
      ...(devices.names.has(name) ? [invalid(`${at}.name`, name, 'must not already exist in volumeDevices')] : []),
      ...(devices.paths.has(mountPath)
        ? [invalid(`${at}.mountPath`, mountPath, 'must not already exist as a path in volumeDevices')]
        : []),
    ]
  })
  return [...ofMounts, ...ofDevices]
}
