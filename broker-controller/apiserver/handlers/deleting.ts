/** delete and deletecollection: what goes at once, what is only marked, what may not go. */
import { conflict, isApiError, notFound } from '../../../api/api-error.ts'
import { type DeleteOptions, DeleteOptionsSchema } from '../../../api/deletion/delete-options.ts'
import { type Deletion, dependentsFinalizers, planDeletion } from '../../../api/deletion/object-deletion.ts'
import type { AnyObject } from '../../../api/meta.ts'
import { invalid, invalidObject } from '../../../api/problem.ts'
import type { Clock } from '../../../daemon/clock.ts'
import { yieldTurn } from '../../../daemon/limits/turn-limit.ts'
import type { AnyStored, ObjectKey, Store } from '../../store/store.ts'
import { type ApiResponse, objectAnswer } from '../wire/answers.ts'
import { isSwitchedOn } from '../wire/query.ts'
import { isDryRun, parseBody, readAs } from '../wire/request-body.ts'
import { successStatus } from '../wire/status-errors.ts'
import { pageOf, pageOfList, refuseListOptions, selectionOf } from './list-options.ts'
import { represent, representList } from './representation.ts'
import { forbid, keyOfRoute, representationOptions } from './resource-request.ts'
import type { KindStrategy, ResourceNeeds, ResourceRequest } from './strategy.ts'
import { type RequestWebhooks, webhooksOf } from './webhook-gate.ts'

export type DeletionRequest = {
  readonly key: ObjectKey
  readonly options?: DeleteOptions
  readonly dryRun?: boolean
  /** What else is written on an object that stays for now. */
  readonly change?: (object: AnyObject) => AnyObject
  /** Judges the deletion of the object as it is. Throws the ApiError of a refusal. */
  readonly admit?: (object: AnyStored) => Promise<void>
}

export type DeletionNeeds = { readonly store: Store; readonly clock: Clock }

const waitsMs = [10, 20, 40, 80, 160]

export type DeletionResult = { readonly removed: boolean; readonly object: AnyStored | AnyObject }

/** The object as it now is, or as it was when it is gone. Throws NotFound, Conflict, Forbidden. */
export async function deleteOne(
  kind: KindStrategy,
  { key, options = {}, dryRun = false, change = (object) => object, admit }: DeletionRequest,
  { store, clock }: DeletionNeeds,
): Promise<DeletionResult> {
  refuseUndeletable(kind, key.name)
  for (let failures = 0; ; failures++) {
    const present = await store.get(kind.id, key)
    if (present === undefined) throw notFound(kind, key.name)
    refuseOther(kind, present, options)
    await admit?.(present)
    const terms = { ...options, ...defaultPolicy(kind, present, options), nowMs: clock.wallMs() }
    const plan = planDeletion(change(present), terms)
    try {
      if (dryRun) return foreseen(present, plan)
      return await carryOut(kind, key, present, plan, { store, clock })
    } catch (error) {
      const waitMs = isApiError(error, 'Conflict') ? waitsMs[failures] : undefined
      if (waitMs === undefined) throw error
      await clock.sleep(waitMs)
    }
  }
}

function foreseen(present: AnyStored, plan: Deletion): DeletionResult {
  return plan.remove ? { removed: true, object: present } : { removed: false, object: plan.object }
}

async function carryOut(
  kind: KindStrategy,
  key: ObjectKey,
  present: AnyStored,
  plan: Deletion,
  { store, clock }: DeletionNeeds,
): Promise<DeletionResult> {
  // The same if nothing is new: writing the present object changes nothing.
  if (!plan.remove) return { removed: false, object: await store.update(kind.id, plan.object) }
  const { uid, resourceVersion } = present.metadata
  await kind.beforeRemoval?.(key.name, { store, clock })
  return { removed: true, object: await store.delete(kind.id, key, { uid, resourceVersion }) }
}

/** For who names no policy, and whose dependents stay (deleteOptionWarnings in pkg/registry/batch/job/storage). */
const orphanWarning =
  'child pods are preserved by default when jobs are deleted; set propagationPolicy=Background to remove them or set ' +
  'propagationPolicy=Orphan to suppress this warning'

function deletionWarnings(
  { warnsOfOrphans }: KindStrategy,
  options: DeleteOptions,
  webhooks: RequestWebhooks | undefined,
): readonly string[] {
  return [...(warnsOfOrphans && !isPolicyAsked(options) ? [orphanWarning] : []), ...(webhooks?.warnings ?? [])]
}

function isPolicyAsked({ propagationPolicy, orphanDependents }: DeleteOptions): boolean {
  return propagationPolicy !== undefined || orphanDependents !== undefined
}

/** Where neither the request nor a finalizer decides about the dependents (shouldOrphanDependents in registry/generic). */
function defaultPolicy(
  { orphansByDefault, hasNoDependents }: KindStrategy,
  { metadata }: AnyObject,
  options: DeleteOptions,
): Pick<DeleteOptions, 'propagationPolicy'> {
  if (hasNoDependents) return { propagationPolicy: 'Background' }
  const isDecided = Object.values<string>(dependentsFinalizers).some((name) => metadata.finalizers?.includes(name))
  return orphansByDefault && !isPolicyAsked(options) && !isDecided ? { propagationPolicy: 'Orphan' } : {}
}

export async function deleteObject(request: ResourceRequest, needs: ResourceNeeds): Promise<ApiResponse> {
  const { route, query } = request
  const { resource } = route
  const representation = representationOptions(request, needs)
  const options = await deleteOptions(request, needs)
  const dryRun = isDryRun(query, 'DeleteOptions', options.dryRun)
  const webhooks = await webhooksOf(request, needs.webhooks, 'DELETE', dryRun)
  const deletion = { key: keyOfRoute(route), options, dryRun, ...(webhooks && { admit: judging(webhooks) }) }
  const { removed, object } = await deleteOne(resource, deletion, needs)
  const warnings = deletionWarnings(resource, options, webhooks)
  if (!removed || resource.returnsDeletedObject) {
    // As DeleteResource (apiserver, endpoints/handlers/delete.go).
    const code = !removed && options.orphanDependents === false ? 202 : 200
    return objectAnswer(represent(resource, object, representation), code, warnings)
  }
  const { name, group } = resource
  const { uid } = object.metadata
  const done = successStatus({ name: route.name, ...(group && { group }), kind: name, ...(uid && { uid }) })
  return objectAnswer(done, 200, warnings)
}

function judging(webhooks: RequestWebhooks): (object: AnyStored) => Promise<void> {
  return async (object) => {
    const { name } = object.metadata
    await webhooks.mutate(undefined, object, name)
    await webhooks.validate(undefined, object, name)
  }
}

/** The store writes together what is asked for together. */
const writtenTogether = 500

/**
 * Deletes these objects in parts, each of which the store writes together; others have their turn in between. The results come part by
 * part, in the order of the objects: the caller ends it by not asking for the next one. `most`: in one part.
 */
export async function* deleteEach(
  kind: KindStrategy,
  objects: readonly AnyStored[],
  deletion: Omit<DeletionRequest, 'key'>,
  needs: DeletionNeeds,
  most = writtenTogether,
): AsyncGenerator<readonly PromiseSettledResult<DeletionResult>[]> {
  const together = Math.min(kind.deletedTogether ?? most, most)
  for (let at = 0; at < objects.length; at += together) {
    await yieldTurn()
    const deletions = objects.slice(at, at + together).map(({ metadata }) => {
      const key = { namespace: metadata.namespace ?? '', name: metadata.name }
      return deleteOne(kind, { ...deletion, key }, needs)
    })
    yield await Promise.allSettled(deletions)
  }
}

export async function deleteCollection(request: ResourceRequest, needs: ResourceNeeds): Promise<ApiResponse> {
  const { route, query } = request
  const { resource, namespace } = route
  const representation = representationOptions(request, needs)
  const { matches, isEverything } = selectionOf(resource, query)
  const nowMs = needs.clock.wallMs()
  refuseListOptions(query)
  const wanted = pageOf(query, nowMs)
  const options = await deleteOptions(request, needs)
  const dryRun = isDryRun(query, 'DeleteOptions', options.dryRun)
  const webhooks = await webhooksOf(request, needs.webhooks, 'DELETE', dryRun)
  const { items, resourceVersion } = await needs.store.list(resource.id, namespace || undefined)
  const selected = items.filter(matches)
  const page = pageOfList(selected, { resourceVersion, nowMs }, wanted, isEverything)
  const ended: AnyObject[] = []
  const deletion = { options, dryRun, ...(webhooks && { admit: judging(webhooks) }) }
  for await (const results of deleteEach(resource, page.items, deletion, needs)) {
    for (const result of results) {
      if (result.status === 'fulfilled') ended.push(result.value.object)
      else if (!isApiError(result.reason, 'NotFound')) throw result.reason
    }
  }
  const list = representList(resource, ended, page.metadata, representation)
  return objectAnswer(list, 200, deletionWarnings(resource, options, webhooks))
}

/** In the body, or, as older clients do, in the query. */
async function deleteOptions(request: ResourceRequest, { parseYaml }: ResourceNeeds): Promise<DeleteOptions> {
  const body = await request.readBody()
  const isGiven = body.toString('utf8').trim() !== ''
  const input = isGiven
    ? parseBody(body, request, { schema: DeleteOptionsSchema }, parseYaml)
    : optionsInQuery(request.query)
  const options = readAs(DeleteOptionsSchema, 'DeleteOptions', input)
  if (options.orphanDependents !== undefined && options.propagationPolicy !== undefined) {
    const detail = 'orphanDependents and deletionPropagation cannot be both set'
    const problem = invalid('propagationPolicy', options.propagationPolicy, detail)
    throw invalidObject({ kind: 'DeleteOptions', group: 'meta.k8s.io' }, '', [problem])
  }
  return options
}

function optionsInQuery(query: URLSearchParams): unknown {
  const seconds = query.get('gracePeriodSeconds')
  const policy = query.get('propagationPolicy')
  // Convert_url_Values_To_v1_DeleteOptions (apimachinery, meta/v1/conversion.go).
  const [uid, resourceVersion] = [query.get('uid'), query.get('resourceVersion')]
  const preconditions = { ...(uid && { uid }), ...(resourceVersion && { resourceVersion }) }
  return {
    ...(Object.keys(preconditions).length > 0 && { preconditions }),
    ...(seconds !== null && { gracePeriodSeconds: Number(seconds) }),
    ...(policy && { propagationPolicy: policy }),
    ...(query.has('orphanDependents') && { orphanDependents: isSwitchedOn(query, 'orphanDependents') }),
  }
}

/** Throws Conflict when this is not the object, or not the version, that is to be deleted. */
export function refuseOther(kind: KindStrategy, { metadata }: AnyObject, { preconditions = {} }: DeleteOptions): void {
  const { uid, resourceVersion } = preconditions
  if (uid && uid !== metadata.uid) {
    const because = `Precondition failed: UID in precondition: ${uid}, UID in object meta: ${metadata.uid}`
    throw conflict(kind, metadata.name ?? '', because)
  }
  if (resourceVersion && resourceVersion !== metadata.resourceVersion) {
    const asked = `ResourceVersion in precondition: ${resourceVersion}`
    const because = `Precondition failed: ${asked}, ResourceVersion in object meta: ${metadata.resourceVersion}`
    throw conflict(kind, metadata.name ?? '', because)
  }
}

function refuseUndeletable(kind: KindStrategy, name: string): void {
  const { names = [], because = '' } = kind.undeletable ?? {}
  if (names.includes(name)) throw forbid(kind, name, because)
}
