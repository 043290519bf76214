/** The authorities that the fleet trusts, as the controller publishes them. */
import { ConfigMapSchema } from '../../api/config-map.ts'
import { decode } from '../../api/decode.ts'
import { certificatesIn } from '../../api/text/pem.ts'
import type { ApiClient } from '../../daemon/api-client.ts'

/** PEM, the one that signs first; undefined where the controller does not publish it. Rejects when the controller does not answer. */
export async function authoritiesOf(api: Pick<ApiClient, 'get'>, signal: AbortSignal): Promise<string | undefined> {
  const answer = await api.get('/api/v1/namespaces/kube-public/configmaps/cluster-info', signal)
  const decoded = answer.status === 200 ? decode(ConfigMapSchema, answer.body) : undefined
  const authorities = decoded?.ok ? decoded.value.data?.['authorities'] : undefined
  return authorities !== undefined && certificatesIn(authorities).length > 0 ? authorities : undefined
}
