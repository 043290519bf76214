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
    const inMounts = 'must not already exist in volumeMounts'
    const pathInMounts = 'must not already exist as a path in volumeMounts'
    return [
      ...deviceNameProblems(`${at}.name`, name, repeated.names.has(index), isClaim.get(name)),
      ...devicePathProblems(`${at}.devicePath`, devicePath, repeated.paths.has(index)),
      ...(mounted.names.has(name) ? [invalid(`${at}.name`, name, inMounts)] : []),
      ...(mounted.paths.has(devicePath) ? [invalid(`${at}.devicePath`, devicePath, pathInMounts)] : []),
    ]
  })
  return [...mountsBesideDevices(`${field}.volumeMounts`, volumeMounts, volumeDevices), ...ofDevices]
}

type Mounts = NonNullable<Container['volumeMounts']>
type Devices = NonNullable<Container['volumeDevices']>

/** `isClaim`: of the volume of that name; undefined: there is none. */
function deviceNameProblems(
  field: string,
  name: string,
  isRepeated: boolean,
  isClaim: boolean | undefined,
): readonly Problem[] {
  const onlyClaims = 'can only use volume source type of PersistentVolumeClaim or Ephemeral for block mode'
  return [
    ...(name === '' ? [required(field)] : []),
    ...(isRepeated ? [invalid(field, name, 'must be unique')] : []),
    ...(isClaim === false ? [invalid(field, name, onlyClaims)] : []),
    ...(isClaim === undefined ? [notFoundValue(field, name)] : []),
  ]
}

function devicePathProblems(field: string, path: string, isRepeated: boolean): readonly Problem[] {
  return [
    ...(path === '' ? [required(field)] : []),
    ...(isRepeated ? [invalid(field, path, 'must be unique')] : []),
    ...(path.split('/').includes('..') ? [invalid(field, path, "can not contain backsteps ('..')")] : []),
  ]
}

function mountsBesideDevices(field: string, mounts: Mounts, devices: Devices): readonly Problem[] {
  const names = new Set(devices.map(({ name }) => name))
  const paths = new Set(devices.map(({ devicePath }) => devicePath))
  return mounts.flatMap(({ name, mountPath }, index): readonly Problem[] => {
    const at = `${field}[${index}]`
    const inDevices = 'must not already exist in volumeDevices'
    const pathInDevices = 'must not already exist as a path in volumeDevices'
    return [
      ...(names.has(name) ? [invalid(`${at}.name`, name, inDevices)] : []),
      ...(paths.has(mountPath) ? [invalid(`${at}.mountPath`, mountPath, pathInDevices)] : []),
    ]
  })
}
