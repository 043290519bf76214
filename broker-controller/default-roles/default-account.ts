/** The service account `default` of a namespace: pods that name no account have it. */

import type { ServiceAccount } from '../../api/access/service-account.ts'
import { defaultAccountName } from '../../api/access/service-account-names.ts'
import { isApiError } from '../../api/api-error.ts'
import type { Store, StoredObject } from '../store/store.ts'

/** The account, created where it is missing. */
export async function ensureDefaultAccount(
  store: Pick<Store, 'get' | 'create'>,
  namespace: string,
): Promise<StoredObject<'serviceaccounts'> | undefined> {
  const key = { namespace, name: defaultAccountName }
  const present = await store.get('serviceaccounts', key)
  if (present !== undefined) return present
  const account: ServiceAccount = { apiVersion: 'v1', kind: 'ServiceAccount', metadata: key }
  try {
    return await store.create('serviceaccounts', account)
  } catch (error) {
    if (!isApiError(error, 'AlreadyExists')) throw error
    return await store.get('serviceaccounts', key)
  }
}
