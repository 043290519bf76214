/** The objects of one kind by the controller that they belong to: all controllers of workloads share one index of the pods. */
import type { BuiltInName } from '../../../api/resources.ts'
import { type ChangeListener, type InformerNeeds, informer, keyText } from '../../store/informer.ts'
import type { ObjectKey, StoredObject } from '../../store/store.ts'
import { controllerOf } from './controller-ref.ts'

export interface OwnedObjects<D extends BuiltInName> {
  readonly resource: D
  get(key: ObjectKey): StoredObject<D> | undefined
  /** Those of its namespace whose controller it is, in no order: a pod of another namespace may name its uid, too. */
  ofController(controller: Controller): Iterable<StoredObject<D>>
  /** How many these are; the cost does not grow with them. */
  countOf(controller: Controller): number
  /** Those of the namespace that have no controller, in no order. */
  orphansOf(namespace: string): Iterable<StoredObject<D>>
  /** Reads what the store has: what this process has written is in the index then. Throws ApiError Expired for a moment. */
  catchUp(): void
  /** Calls the listener for each change from now on, and for each object of the first list. */
  onChange(listener: ChangeListener<D>): void
  readonly listed: Promise<void>
  run(signal: AbortSignal): Promise<void>
}

type Controller = { readonly metadata: { readonly namespace?: string; readonly uid: string } }

export function ownedObjects<D extends BuiltInName>(needs: InformerNeeds, resource: D): OwnedObjects<D> {
  const byController = new Map<string, Map<string, StoredObject<D>>>()
  const orphans = new Map<string, Map<string, StoredObject<D>>>()
  const listeners: ChangeListener<D>[] = []

  const placeOf = (object: StoredObject<D>) => {
    const controller = controllerOf(object)
    const { namespace = '' } = object.metadata
    return controller === undefined
      ? ([orphans, namespace] as const)
      : ([byController, placeText(namespace, controller.uid)] as const)
  }
  const remove = (object: StoredObject<D>) => {
    const [index, at] = placeOf(object)
    const objects = index.get(at)
    objects?.delete(keyText(object.metadata))
    if (objects?.size === 0) index.delete(at)
  }
  const add = (object: StoredObject<D>) => {
    const [index, at] = placeOf(object)
    const objects = index.get(at) ?? new Map<string, StoredObject<D>>()
    index.set(at, objects.set(keyText(object.metadata), object))
  }

  const objects = informer(needs, resource, (present, previous) => {
    if (previous !== undefined) remove(previous)
    if (present !== undefined) add(present)
    for (const listener of listeners) listener(present, previous)
  })
  return {
    resource,
    get: objects.get,
    ofController: ({ metadata: { namespace = '', uid } }) =>
      byController.get(placeText(namespace, uid))?.values() ?? [],
    countOf: ({ metadata: { namespace = '', uid } }) => byController.get(placeText(namespace, uid))?.size ?? 0,
    orphansOf: (namespace) => orphans.get(namespace)?.values() ?? [],
    catchUp: objects.catchUp,
    onChange: (listener) => void listeners.push(listener),
    listed: objects.listed,
    run: objects.run,
  }
}

function placeText(namespace: string, uid: string): string {
  return `${namespace}/${uid}`
}
