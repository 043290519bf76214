/** Validates ephemeral containers, which are added to a pod while it runs. */
import type { Container, EphemeralContainer, PodSpec } from '../pod.ts'
import { duplicate, forbidden, notFoundValue, type Problem } from '../problem.ts'
import { devicesProblems } from '../storage/pod-volume-problems.ts'
import { containerProblems } from './container-validation.ts'
import { repeatedPlaces } from './repeated.ts'
import { containerSecurityProblems } from './security-validation.ts'
import { mountsProblems, volumeNames } from './volume-validation.ts'

/** They come later, and by a way of their own. */
export function earlyProblems(at: string, { ephemeralContainers = [] }: PodSpec): readonly Problem[] {
  return ephemeralContainers.length === 0
    ? []
    : [forbidden(`${at}.ephemeralContainers`, 'cannot be set on create: they are added to a pod that is there')]
}

/** Problems of the ephemeral containers of a specification with its defaults at the path `at`. */
export function ephemeralProblems(at: string, spec: PodSpec): readonly Problem[] {
  const { ephemeralContainers = [], initContainers = [], containers } = spec
  const targets = [...containers, ...initContainers].map(({ name }) => name)
  const repeated = repeatedPlaces([...targets, ...ephemeralContainers.map(({ name }) => name)])
  const known = new Set(targets)
  const volumes = volumeNames(spec)
  return ephemeralContainers.flatMap((container, index) => {
    const field = `${at}.ephemeralContainers[${index}]`
    const { name, targetContainerName: target = '' } = container
    return [
      ...(name !== '' && repeated.has(targets.length + index) ? [duplicate(`${field}.name`, name)] : []),
      ...containerProblems(field, container, spec.hostNetwork === true),
      ...containerSecurityProblems(field, container),
      ...mountsProblems(field, container, volumes),
      ...devicesProblems(field, container, spec),
      ...(target === '' || known.has(target) ? [] : [notFoundValue(`${field}.targetContainerName`, target)]),
      ...lastingProblems(field, container),
    ]
  })
}

const lasting = [
  'ports',
  'resources',
  'resizePolicy',
  'restartPolicy',
  'livenessProbe',
  'readinessProbe',
  'startupProbe',
  'lifecycle',
] as const satisfies readonly (keyof Container)[]

/** Nothing may rely on one of them. */
function lastingProblems(field: string, container: EphemeralContainer): readonly Problem[] {
  const because = 'cannot be set for an Ephemeral Container'
  const inside = (container.volumeMounts ?? []).flatMap((mount, index) =>
    (['subPath', 'subPathExpr'] as const)
      .filter((name) => mount[name])
      .map((name) => forbidden(`${field}.volumeMounts[${index}].${name}`, because)),
  )
  return [
    ...lasting.filter((name) => asks(container[name])).map((name) => forbidden(`${field}.${name}`, because)),
    ...inside,
  ]
}

function asks(value: unknown): boolean {
  if (value === undefined || value === '') return false
  return typeof value !== 'object' || value === null || Object.keys(value).length > 0
}
