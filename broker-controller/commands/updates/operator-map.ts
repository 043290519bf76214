/** A ConfigMap in which an operator writes what the controller shall do with the fleet, as the commands read and change it. */
import type { ConfigMap } from '../../../api/config-map.ts'
import type { ApiClient } from '../../../daemon/api-client.ts'
import { readConfigMap } from '../../controllers/rollouts/rollout-object.ts'
import { expectSuccess } from '../connection/expect-success.ts'

export type OperatorApi = {
  readonly client: Pick<ApiClient, 'get' | 'post' | 'patch'>
  readonly signal: AbortSignal
}

/** Null removes a field. */
type Changes = { readonly [field: string]: string | null }

/** Each throws with the reason when the API rejects its request. */
export interface OperatorMap {
  /** Undefined: there is none. */
  read(api: OperatorApi): Promise<ConfigMap | undefined>
  /** Makes it where there is none. */
  start(data: Changes, api: OperatorApi): Promise<void>
  /** Throws where there is none. */
  change(data: Changes, api: OperatorApi): Promise<void>
}

/** `noun`: what messages call it; `none`: the error where there is none. */
export function operatorMap({
  key: { namespace, name },
  noun,
  none,
}: {
  readonly key: { readonly namespace: string; readonly name: string }
  readonly noun: string
  readonly none: string
}): OperatorMap {
  const folder = `/api/v1/namespaces/${namespace}/configmaps`
  const path = `${folder}/${name}`
  return {
    async read({ client, signal }) {
      const answer = await client.get(path, signal)
      if (answer.status === 404) return undefined
      expectSuccess(`Cannot read the ${noun}`, answer)
      const map = readConfigMap(answer.body)
      if (map === undefined) throw new Error(`Cannot read the ${noun}: the answer is not a ConfigMap`)
      return map
    },
    async start(data, { client, signal }) {
      const patched = await client.patch(path, { data }, undefined, signal)
      if (patched.status !== 404) return expectSuccess(`Cannot start the ${noun}`, patched)
      const written = Object.fromEntries(Object.entries(data).filter(([, value]) => value !== null))
      const body = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name, namespace }, data: written }
      expectSuccess(`Cannot start the ${noun}`, await client.post(folder, body, signal))
    },
    async change(data, { client, signal }) {
      const answer = await client.patch(path, { data }, undefined, signal)
      if (answer.status === 404) throw new Error(none)
      expectSuccess(`Cannot change the ${noun}`, answer)
    },
  }
}
