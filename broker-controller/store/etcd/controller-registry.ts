/** The controllers on a prefix of etcd: a key for each, which ends a day after its controller was last there. */
import { decode } from '../../../api/decode.ts'
import { list, object, text } from '../../../api/schema.ts'
import type { Clock } from '../../../daemon/clock.ts'
import type { Log } from '../../../daemon/log.ts'
import type { ControllerAddress, ControllerRegistry } from '../controllers.ts'
import { equalJSON } from '../equal-json.ts'
import type { EtcdClient } from './etcd-client.ts'
import { answerOf, EtcdError } from './etcd-error.ts'
import type { EtcdKeys } from './etcd-keys.ts'
import { type KeyValue, methods } from './etcd-messages.ts'
import { readRange } from './etcd-range.ts'
import { keptAlive } from './owner-key.ts'

export type ControllerRegistryNeeds = {
  readonly client: EtcdClient
  readonly keys: EtcdKeys
  readonly clock: Clock
  readonly log: Log
}

const addressSchema = object({
  apiServer: text,
  mqttServer: text,
  hosts: list(text),
  proxyCertificate: text,
  version: text,
})

/** A machine that is repaired within a day stays in the lists of addresses. */
const leaseSeconds = 24 * 3600
const keepMs = 10 * 60_000
const readMs = 2_000

export function controllerRegistry({ client, keys, clock, log }: ControllerRegistryNeeds): ControllerRegistry {
  const listeners: (() => void)[] = []
  let known: readonly ControllerAddress[] = []
  let own: ControllerAddress | undefined
  let lease: string | undefined
  let keptMs = 0
  let timesReplaced = 0
  let reading: Promise<void> | undefined

  const write = async (address: ControllerAddress) => {
    // One for the life of the process: each lasts a day.
    if (lease === undefined || !(await keptAlive(client, lease, clock))) {
      lease = (await client.call(methods.leaseGrant, { ttl: leaseSeconds })).id
    }
    const value = Buffer.from(JSON.stringify(address))
    await client.call(methods.txn, { compare: [], success: [{ put: { key: nameOf(keys, address), lease, value } }] })
    keptMs = clock.monotonicMs()
  }
  const read = async () => {
    const found: ControllerAddress[] = []
    await readRange(client, keys.controllers, (page) => {
      for (const one of page) found.push(...addressIn(one))
    })
    if (equalJSON(found, known)) return
    known = found
    for (const listener of listeners) listener()
  }
  const refresh = () => {
    reading ??= read().finally(() => {
      reading = undefined
    })
    return reading
  }
  /** A key that was deleted, or that another process of this name has replaced, is written again. */
  const keep = async () => {
    if (own === undefined) return
    const { apiServer } = own
    const isWritten = known.some((one) => equalJSON(one, own))
    const isReplaced = !isWritten && known.some((one) => one.apiServer === apiServer)
    timesReplaced = isReplaced ? timesReplaced + 1 : 0
    // The first time what was read may be older than what this process has written since.
    if (timesReplaced === 2) {
      log.warn('Another controller has the address of this one: give each its own advertiseAddress', { apiServer })
    }
    if (!isWritten || clock.monotonicMs() - keptMs >= keepMs) await write(own)
  }
  return {
    async register(self) {
      own = self // also where it cannot be written now: it is tried again
      try {
        await write(self)
        await refresh()
      } catch (error) {
        throw answerOf(error)
      }
    },
    async withdraw() {
      own = undefined
      try {
        if (lease !== undefined) await client.call(methods.leaseRevoke, { id: lease })
        lease = undefined
        await refresh()
      } catch (error) {
        throw answerOf(error)
      }
    },
    all: () => known,
    refresh,
    onChange: (listener) => void listeners.push(listener),
    async run(signal) {
      let isFailing = false
      while (!signal.aborted) {
        try {
          await refresh()
          await keep()
          isFailing = false
        } catch (error) {
          if (!(error instanceof EtcdError)) throw error
          if (!isFailing) log.debug('Cannot read the controllers in etcd', { error })
          isFailing = true
        }
        await clock.sleep(readMs, signal)
      }
    },
  }
}

function nameOf(keys: EtcdKeys, { apiServer }: ControllerAddress): Buffer {
  return keys.controller(new URL(apiServer).host)
}

function addressIn({ value }: KeyValue): readonly ControllerAddress[] {
  try {
    const decoded = decode(addressSchema, JSON.parse(value.toString('utf8')))
    return decoded.ok ? [decoded.value] : []
  } catch {
    return []
  }
}
