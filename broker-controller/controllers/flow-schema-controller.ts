/**
 * Loop: keeps the condition Dangling of every FlowSchema: whether the PriorityLevelConfiguration that it names is missing
 * (staging/src/k8s.io/apiserver/pkg/util/flowcontrol/apf_controller.go).
 */
import type { FlowSchema } from '../../api/flow-control/flow-schema.ts'
import { type Clock, rfc3339 } from '../../daemon/clock.ts'
import { runController } from '../../daemon/controller.ts'
import type { Log } from '../../daemon/log.ts'
import { type Loop, runLoops } from '../../daemon/run.ts'
import { workQueue } from '../../daemon/work-queue.ts'
import { informer, keyFrom, keyText } from '../store/informer.ts'
import { rewrite } from '../store/rewrite.ts'
import type { Store } from '../store/store.ts'

export type FlowSchemaNeeds = { readonly store: Store; readonly clock: Clock; readonly log: Log }

/** A manifest brings a level and its schemas within moments. */
const debounceMs = 20

export function flowSchemaController({ store, clock, log }: FlowSchemaNeeds): Loop {
  const run = async (signal: AbortSignal) => {
    const queue = workQueue(clock)
    const schemas = informer({ store, clock, log }, 'flowschemas', (present) => {
      if (present !== undefined) queue.addAfter(keyText(present.metadata), debounceMs)
    })
    const levels = informer({ store, clock, log }, 'prioritylevelconfigurations', (present, previous) => {
      if (present !== undefined && previous !== undefined) return
      const name = (present ?? previous)?.metadata.name
      for (const { metadata, spec } of schemas.all()) {
        if (spec?.priorityLevelConfiguration?.name === name) queue.addAfter(keyText(metadata), debounceMs)
      }
    })
    const reconcile = async (key: string) => {
      await rewrite({ store, clock }, 'flowschemas', {
        key: keyFrom(key),
        part: 'status',
        change(schema) {
          const name = schema.spec?.priorityLevelConfiguration?.name ?? ''
          const isThere = levels.get({ namespace: '', name }) !== undefined
          const status = statusAfter(schema, isThere, rfc3339(clock.wallMs()))
          return status && { ...schema, status }
        },
      })
      return undefined
    }
    const work = async () => {
      await Promise.all([schemas.listed, levels.listed])
      if (!signal.aborted) await runController({ name: 'flow-schemas', reconcile }, queue, log, signal)
    }
    await runLoops(
      [
        { name: 'flow-schemas', run: schemas.run },
        { name: 'priority-levels', run: levels.run },
        { name: 'work', run: work },
      ],
      signal,
      log,
    )
  }
  return { name: 'flow-schemas', run }
}

/** The status with the condition as it must be; undefined: it is so already. Other conditions stay. */
export function statusAfter(
  { spec, status }: FlowSchema,
  isThere: boolean,
  now: string,
): NonNullable<FlowSchema['status']> | undefined {
  const name = JSON.stringify(spec?.priorityLevelConfiguration?.name ?? '')
  const references = `This FlowSchema references the PriorityLevelConfiguration object named ${name}`
  const wanted = isThere
    ? { status: 'False', reason: 'Found', message: `${references} and it exists` }
    : { status: 'True', reason: 'NotFound', message: `${references} but there is no such object` }
  const conditions = status?.conditions ?? []
  const present = conditions.find(({ type }) => type === 'Dangling')
  const isSame =
    present?.status === wanted.status && present.reason === wanted.reason && present.message === wanted.message
  if (isSame) return undefined
  const condition = { type: 'Dangling', ...wanted, lastTransitionTime: now }
  return { ...status, conditions: [...conditions.filter(({ type }) => type !== 'Dangling'), condition] }
}
