/** An API in memory whose CustomResourceDefinitions are served, with the loops that do it. */
import { setImmediate } from 'node:timers/promises'
import { quietLog } from '../../daemon/testing/quiet-log.ts'
import { kindDeletion } from '../apiserver/kind-deletion.ts'
import { followDefinitions } from '../apiserver/kinds/custom/follow-definitions.ts'
import { type LiveKinds, liveKinds } from '../apiserver/kinds/custom/live-kinds.ts'
import type { WebhookCaller } from '../apiserver/webhooks/webhook-call.ts'
import { builtInKinds } from '../assembly/control-plane.ts'
import { definitionController } from '../controllers/custom-kinds/definition-controller.ts'
import { anApi } from './api-in-memory.ts'

export const definitionsPath = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions'

type Test = Parameters<typeof anApi>[0] & { teardown(end: () => Promise<void>): void }

/** `webhook`: answers the calls of webhooks. */
export async function aCustomApi(t: Test, webhook?: WebhookCaller['call']) {
  const kinds: LiveKinds = liveKinds(builtInKinds)
  const api = await anApi(t, { kinds, webhook })
  const needs = { store: api.store, clock: api.clock, log: quietLog(t) }
  const stopping = new AbortController()
  const definitions = await followDefinitions(needs, kinds)
  const loops = [definitions, definitionController(needs), kindDeletion({ ...needs, kinds })]
  const running = Promise.all(loops.map((loop) => loop.run(stopping.signal)))
  t.teardown(async () => {
    stopping.abort()
    await running
  })
  const conditionOf = async (name: string, type: string) => {
    const { body } = await api.ask('GET', `${definitionsPath}/${name}`)
    const { conditions = [] } = (body['status'] ?? {}) as { conditions?: { type: string; status: string }[] }
    return conditions.find((one) => one.type === type)
  }
  const until = async (isTrue: () => Promise<boolean>) => {
    for (let turns = 0; turns < 10_000; turns++) {
      if (await isTrue()) return
      await setImmediate()
    }
    throw new Error('It did not happen')
  }
  return {
    ...api,
    kinds,
    conditionOf,
    until,
    async define(definition: { readonly metadata: { readonly name: string } }) {
      const created = await api.ask('POST', definitionsPath, { body: definition })
      if (created.code !== 201) return created
      await until(async () => (await conditionOf(definition.metadata.name, 'Established'))?.status === 'True')
      return created
    },
  }
}

type VersionOf = { readonly [field: string]: unknown }

/** A definition of `shops.example.com`, with one version, or with these. */
export function aDefinition(
  schema: object,
  { version = {}, versions, spec = {} }: { version?: VersionOf; versions?: readonly VersionOf[]; spec?: object } = {},
) {
  const v1 = { name: 'v1', served: true, storage: true, schema: { openAPIV3Schema: schema }, ...version }
  return {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name: 'shops.example.com' },
    spec: {
      group: 'example.com',
      scope: 'Namespaced',
      names: { plural: 'shops', kind: 'Shop', shortNames: ['sh'], categories: ['all'] },
      versions: versions ?? [v1],
      ...spec,
    },
  }
}
