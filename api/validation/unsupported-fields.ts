/**
 * What a manifest for Kubernetes may ask and our nodes do not do yet: refused by name, never dropped in silence. One line
 * a field of a pod's specification: who builds it deletes the line. `[]` stands for every item of a list, `*` for every field of an object.
 */

import type { PodSpec } from '../pod.ts'
import { fieldWithin, forbidden, type Problem } from '../problem.ts'
import { fieldOf, isObject } from '../text/json.ts'

/** The message for each of them. */
export const notYet = 'is not supported by this version of Bramble'

type Unsupported = {
  readonly field: string
  readonly refuses: (value: unknown) => boolean
  /** Also an empty object asks for it. */
  readonly whenEmpty?: true
}

/** One of them makes a volume what it is, even when it is empty. */
const volumeSources = [
  ...['iscsi', 'image', 'awsElasticBlockStore', 'azureDisk'],
  ...['azureFile', 'cephfs', 'cinder', 'fc', 'flexVolume', 'flocker', 'gcePersistentDisk', 'gitRepo', 'glusterfs'],
  ...['photonPersistentDisk', 'portworxVolume', 'quobyte', 'rbd', 'scaleIO', 'storageos', 'vsphereVolume'],
]

const unsupported: readonly Unsupported[] = [
  ...volumeSources.map((source) => whenGiven(`volumes[].${source}`)),
  any('volumes[].projected.sources[].clusterTrustBundle'),
  allBut('hostUsers', true),
  any('securityContext.seLinuxChangePolicy'),
  any('resourceClaims'),
  any('resources.*'),
  allBut('containers[].volumeMounts[].recursiveReadOnly', 'Disabled'),
  allBut('containers[].securityContext.procMount', 'Default'),
  any('containers[].resources.claims'),
  any('containers[].resizePolicy'),
]

/** What a container cannot have, an init container and one that is added later cannot have either. */
const each = 'containers[].'
const others = ['initContainers', 'ephemeralContainers']

/**
 * A problem for each field of the pod specification at the path `at` that asks for what a node cannot do. Empty lists,
 * objects and texts ask for nothing.
 */
export function unsupportedFields(at: string, spec: PodSpec): readonly Problem[] {
  return unsupported.flatMap(({ field, refuses, whenEmpty = false }) =>
    [field, ...others.flatMap((list) => (field.startsWith(each) ? [field.replace(each, `${list}[].`)] : []))]
      .flatMap((one) => placesOf(spec, at, one.split('.')))
      .filter(({ value }) => (whenEmpty ? value !== undefined : asks(value)) && refuses(value))
      .map((place) => forbidden(place.field, notYet)),
  )
}

function any(field: string): Unsupported {
  return { field, refuses: () => true }
}

function whenGiven(field: string): Unsupported {
  return { field, refuses: () => true, whenEmpty: true }
}

function allBut(field: string, harmless: unknown): Unsupported {
  return { field, refuses: (value) => value !== harmless }
}

function asks(value: unknown): boolean {
  if (value === undefined || value === '') return false
  if (Array.isArray(value)) return value.length > 0
  return !isObject(value) || Object.keys(value).length > 0
}

type Place = { readonly field: string; readonly value: unknown }

function placesOf(value: unknown, field: string, [step, ...further]: readonly string[]): readonly Place[] {
  if (step === undefined) return [{ field, value }]
  if (!isObject(value)) return []
  if (step === '*')
    return Object.keys(value).flatMap((name) => placesOf(value[name], fieldWithin(field, name), further))
  if (!step.endsWith('[]')) return placesOf(fieldOf(value, step), fieldWithin(field, step), further)
  const name = step.slice(0, -2)
  const items = fieldOf(value, name)
  if (!Array.isArray(items)) return []
  return items.flatMap((item, index) => placesOf(item, `${fieldWithin(field, name)}[${index}]`, further))
}
