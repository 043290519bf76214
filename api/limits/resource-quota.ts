/** core/v1 ResourceQuota: what all objects of a namespace may use together. */
import { ObjectMetaSchema } from '../meta.ts'
import { type Described, field, list, mapOf, object, oneOf, optional, pointer, quantity, text } from '../schema.ts'

const amounts = optional(mapOf(quantity))

export const ResourceQuotaSchema = object({
  apiVersion: oneOf('v1'),
  kind: oneOf('ResourceQuota'),
  metadata: field(1, ObjectMetaSchema),
  spec: field(
    2,
    optional(
      object('core.v1.ResourceQuotaSpec', {
        hard: field(1, amounts),
        scopes: field(2, optional(list(text))),
        scopeSelector: pointer(
          3,
          optional(
            object('core.v1.ScopeSelector', {
              matchExpressions: field(
                1,
                optional(
                  list(
                    object('core.v1.ScopedResourceSelectorRequirement', {
                      scopeName: field(1, text),
                      operator: field(2, text),
                      values: field(3, optional(list(text))),
                    }),
                  ),
                ),
              ),
            }),
          ),
        ),
      }),
    ),
  ),
  status: field(
    3,
    optional(object('core.v1.ResourceQuotaStatus', { hard: field(1, amounts), used: field(2, amounts) })),
  ),
})
export type ResourceQuota = Described<typeof ResourceQuotaSchema>
export type ResourceQuotaSpec = NonNullable<ResourceQuota['spec']>
export type ScopeRequirement = NonNullable<NonNullable<ResourceQuotaSpec['scopeSelector']>['matchExpressions']>[number]

/** The conditions on pods that a quota can have, all of them, with no expressions of its own (getScopeSelectorsFromQuota). */
export function scopeRequirements({ scopes = [], scopeSelector }: ResourceQuotaSpec): readonly ScopeRequirement[] {
  const named = scopes.map((scopeName) => ({ scopeName, operator: 'Exists' }))
  return [...named, ...(scopeSelector?.matchExpressions ?? [])]
}
