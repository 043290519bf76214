/** Where controllers run. */
import type { Store } from '../../store/store.ts'

/** Where controllers run: they have the Endpoints of the Service `kubernetes`. */
export async function addressesOfControllers(store: Store): Promise<ReadonlySet<string>> {
  const found = await store.get('endpoints', { namespace: 'default', name: 'kubernetes' })
  return new Set((found?.subsets ?? []).flatMap(({ addresses = [] }) => addresses.map(({ ip }) => ip)))
}
