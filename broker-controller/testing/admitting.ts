/** Objects as a client sends them, and what admission makes of them: the object that is stored, or what is wrong with it. */
import { isApiError } from '../../api/api-error.ts'
import { administrator } from '../../api/identity.ts'
import type { AnyObject } from '../../api/meta.ts'
import type { Container, Pod, PodSpec } from '../../api/pod.ts'
import type { BuiltInName, BuiltInTypes } from '../../api/resources.ts'
import { prepareForCreate, prepareForUpdate } from '../apiserver/handlers/admission.ts'
import { kinds } from '../assembly/control-plane.ts'

type Sent = AnyObject | BuiltInTypes[BuiltInName]

export function create(resource: BuiltInName, object: Sent): AnyObject {
  return prepareForCreate(kinds[resource], object, { nowMs: 0, requester: administrator })
}

export function update(resource: BuiltInName, old: Sent, now: Sent): AnyObject {
  return prepareForUpdate(kinds[resource], old, now)
}

/** `field: message` of each cause of the refusal. */
export function causes(act: () => unknown): readonly string[] {
  try {
    act()
    return []
  } catch (error) {
    if (!isApiError(error, 'Invalid')) throw error
    return (error.details?.causes ?? []).map(({ field, message }) => `${field}: ${message}`)
  }
}

/** The field of each cause of the refusal. */
export function fields(act: () => unknown): readonly string[] {
  return causes(act).map((cause) => cause.slice(0, cause.indexOf(': ')))
}

/** As its author writes it: `default/web`, of one container, with no defaults. */
export function pod(spec: Partial<PodSpec> = {}, container: Partial<Container> = {}): Pod {
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: 'web', namespace: 'default' },
    spec: { containers: [{ name: 'web', image: 'nginx:1.27', ...container }], ...spec },
  }
}

/** The same as it is stored. */
export function createdPod(spec?: Partial<PodSpec>, container?: Partial<Container>): Pod {
  return createPod(pod(spec, container))
}

/** This pod as it is stored. */
export function createPod(asked: Pod): Pod {
  return podOf(create('pods', asked))
}

/** `now` as it is stored in place of `old`. */
export function updatePod(old: Pod, now: Pod): Pod {
  return podOf(update('pods', old, now))
}

function podOf(made: AnyObject): Pod {
  if (!isPod(made)) throw new Error('Not a pod')
  return made
}

function isPod(object: AnyObject): object is Pod {
  return object.kind === 'Pod'
}
