/** An object or a list in the form the client reads: itself, a table's rows, its metadata. */
import type { AnyObject, ObjectMeta } from '../../../api/meta.ts'
import { apiVersionOf, type Resource } from '../../../api/resources.ts'
import type { AnswerForm } from '../wire/content-negotiation.ts'
import { type KindStrategy, type ResourceRoute, shownForm, viewOf } from './strategy.ts'
import { type IncludeObject, type ListMeta, tableOf } from './tables.ts'

export type RepresentationOptions = {
  readonly form: AnswerForm
  readonly includeObject: IncludeObject
  readonly nowMs: number
}

export function represent(resource: KindStrategy, object: AnyObject, options: RepresentationOptions): unknown {
  switch (options.form) {
    case 'object':
      return shownForm(resource, object)
    case 'metadata':
      return metadataOf(object)
    case 'table': {
      const { resourceVersion } = object.metadata
      const listMeta = resourceVersion === undefined ? {} : { resourceVersion }
      return tableOf(resource, [object], { nowMs: options.nowMs, listMeta, includeObject: options.includeObject })
    }
  }
}

/** The object, or the view of it that the path names. */
export function representPart(route: ResourceRoute, object: AnyObject, options: RepresentationOptions): unknown {
  const { resource, subresource } = route
  const view = viewOf(resource, subresource)
  if (view === undefined) return represent(resource, object, options)
  const { kind, group, version, schema, table } = view
  const { form: _, ...plain } = resource // the view has a form of its own
  return represent({ ...plain, kind, group, version, schema, table }, view.show(object), options)
}

export function representList(
  resource: KindStrategy,
  objects: readonly AnyObject[],
  listMeta: ListMeta,
  options: RepresentationOptions,
): unknown {
  switch (options.form) {
    case 'object': {
      const items = resource.form === undefined ? objects : objects.map((object) => shownForm(resource, object))
      return {
        kind: resource.listKind ?? `${resource.kind}List`,
        apiVersion: apiVersionOf(resource),
        metadata: listMeta,
        items,
      }
    }
    case 'metadata':
      return {
        kind: 'PartialObjectMetadataList',
        apiVersion: 'meta.k8s.io/v1',
        metadata: listMeta,
        items: objects.map(metadataOf),
      }
    case 'table':
      return tableOf(resource, objects, { nowMs: options.nowMs, listMeta, includeObject: options.includeObject })
  }
}

/** A bookmark has a version only, in the form of the events around it. */
export function representBookmark(resource: Resource, metadata: ObjectMeta, { form }: RepresentationOptions): unknown {
  switch (form) {
    case 'object':
      return { kind: resource.kind, apiVersion: apiVersionOf(resource), metadata }
    case 'metadata':
      return { kind: 'PartialObjectMetadata', apiVersion: 'meta.k8s.io/v1', metadata }
    case 'table':
      return { kind: 'Table', apiVersion: 'meta.k8s.io/v1', metadata, columnDefinitions: [], rows: [] }
  }
}

function metadataOf({ metadata }: AnyObject) {
  return { kind: 'PartialObjectMetadata', apiVersion: 'meta.k8s.io/v1', metadata }
}
