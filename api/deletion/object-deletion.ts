/** Decides how an object is deleted, and its dependents with it. */

import type { AnyObject } from '../meta.ts'
import type { Namespace } from '../namespace.ts'
import { planPodDeletion } from '../pod/pod-deletion.ts'
import type { Pod } from '../pod.ts'
import {
  type CustomResourceDefinition,
  cleanupFinalizer,
  extensionsGroup,
} from '../structural/custom-resource-definition.ts'
import { withDefinitionCondition } from '../structural/definition-conditions.ts'
import type { DeleteOptions } from './delete-options.ts'

export type Deletion =
  | { readonly remove: true }
  /** The very same object when nothing needs writing. */
  | { readonly remove: false; readonly object: AnyObject }

export type DeletionTerms = Pick<DeleteOptions, 'gracePeriodSeconds' | 'propagationPolicy' | 'orphanDependents'> & {
  readonly nowMs: number
}

/** Held by these until its dependents have lost it as their owner, or are gone themselves. */
export const dependentsFinalizers = { Orphan: 'orphan', Foreground: 'foregroundDeletion' } as const

/** Pods end on their node first, namespaces when they are empty, and finalizers hold whatever they stand on. */
export function planDeletion(given: AnyObject, options: DeletionTerms): Deletion {
  const held = isDefinition(given) ? heldDefinition(given, timeOf(options)) : given
  const object = withDependentsFinalizer(held, policyOf(options))
  if (isPod(object)) {
    const plan = planPodDeletion(object, options)
    return plan.remove ? plan : { remove: false, object: plan.pod }
  }
  const { metadata } = object
  if (!isNamespace(object) && (metadata.finalizers ?? []).length === 0) return { remove: true }
  if (metadata.deletionTimestamp !== undefined) return { remove: false, object }
  const deletionTimestamp = timeOf(options)
  if (!isNamespace(object)) {
    const marked = { ...metadata, deletionTimestamp, deletionGracePeriodSeconds: 0 }
    return { remove: false, object: { ...object, metadata: marked } }
  }
  const terminating = { ...metadata, deletionTimestamp }
  return {
    remove: false,
    object: { ...object, metadata: terminating, status: { ...object.status, phase: 'Terminating' } },
  }
}

function timeOf({ nowMs }: DeletionTerms): string {
  return `${new Date(nowMs).toISOString().slice(0, 19)}Z`
}

function isDefinition(object: AnyObject): object is CustomResourceDefinition {
  return object['kind'] === 'CustomResourceDefinition' && object['apiVersion'] === `${extensionsGroup}/v1`
}

/** A definition waits until its objects are deleted (apiextensions-apiserver, registry/customresourcedefinition/etcd.go). */
function heldDefinition(definition: CustomResourceDefinition, now: string): AnyObject {
  const { metadata } = definition
  if (metadata.deletionTimestamp !== undefined) return definition
  const { finalizers = [] } = metadata
  const held = finalizers.includes(cleanupFinalizer) ? finalizers : [...finalizers, cleanupFinalizer]
  const message = 'CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon'
  const condition = { type: 'Terminating', status: 'True', reason: 'InstanceDeletionPending', message }
  const status = withDefinitionCondition(definition.status, condition, now)
  return { ...definition, metadata: { ...metadata, finalizers: held }, status }
}

/** Whether this object is being deleted and no finalizer holds it any more. */
export function isReleased(object: AnyObject): boolean {
  const { metadata } = object
  if (metadata.deletionTimestamp === undefined || (metadata.finalizers ?? []).length > 0) return false
  // A pod with time left is its node's to end; a namespace goes when it is empty.
  return !isNamespace(object) && (metadata.deletionGracePeriodSeconds ?? 0) === 0
}

/** undefined: the earlier value stays. */
function policyOf({ propagationPolicy, orphanDependents }: DeletionTerms): DeleteOptions['propagationPolicy'] {
  if (propagationPolicy !== undefined || orphanDependents === undefined) return propagationPolicy
  return orphanDependents ? 'Orphan' : 'Background'
}

function withDependentsFinalizer(object: AnyObject, policy: DeleteOptions['propagationPolicy']): AnyObject {
  if (policy === undefined) return object
  const present = object.metadata.finalizers ?? []
  const wanted = policy === 'Background' ? undefined : dependentsFinalizers[policy]
  const others = present.filter((name) => !Object.values<string>(dependentsFinalizers).includes(name))
  const finalizers = wanted === undefined ? others : [...others, wanted]
  const before = new Set(present)
  const isSame = finalizers.length === present.length && finalizers.every((name) => before.has(name))
  if (isSame) return object
  const { finalizers: _, ...metadata } = object.metadata
  return { ...object, metadata: finalizers.length > 0 ? { ...metadata, finalizers } : metadata }
}

function isPod(object: AnyObject): object is Pod {
  return object.kind === 'Pod' && object.apiVersion === 'v1'
}

function isNamespace(object: AnyObject): object is Namespace {
  return object.kind === 'Namespace' && object.apiVersion === 'v1'
}
