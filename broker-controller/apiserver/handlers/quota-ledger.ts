/** Where writes are charged to the quotas of their namespace. */
import type { AnyObject } from '../../../api/meta.ts'
import type { Resource } from '../../../api/resources.ts'

export interface QuotaLedger {
  /**
   * Puts the object if the quotas of its namespace allow it. `old` is the object that it replaces. What others are writing
   * at the same time counts. Throws Forbidden.
   */
  charge(
    kind: Pick<Resource, 'id' | 'name' | 'group' | 'namespaced'>,
    object: AnyObject,
    old: AnyObject | undefined,
    put: (object: AnyObject) => Promise<AnyObject>,
  ): Promise<AnyObject>
}
