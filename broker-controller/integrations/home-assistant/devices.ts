/** The devices of the fleet: what each should be on the broker now. */
import { nodeHref } from '../../../api/dashboard/node-href.ts'
import { allowsRemoteReboot } from '../../../api/node/reboot-annotations.ts'
import type { StorageBoard } from '../../usage/storage-board.ts'
import type { UsageBoard } from '../../usage/usage-board.ts'
import { fleetDevice } from './device-ids.ts'
import { announcedKeys, discoveryMessage } from './discovery.ts'
import { type FleetUpdateFacts, fleetUpdateValues } from './fleet-update.ts'
import type { HomeAssistantSettings } from './home-assistant-settings.ts'
import { updateKeys } from './machine-entities.ts'
import { fleetState, machineState, modelOf } from './machine-state.ts'
import type { WantedDevice } from './publications.ts'
import type { WatchedFleet } from './watched-fleet.ts'

export type DevicesNeeds = {
  readonly fleet: WatchedFleet
  readonly usage: Pick<UsageBoard, 'newest'>
  readonly storage: Pick<StorageBoard, 'reportOf'>
  readonly updates: () => FleetUpdateFacts
  readonly pages: string | undefined
  readonly version: string
}

export interface Devices {
  ids(): Iterable<string>
  /** Undefined: there is no such device. */
  wanted(
    id: string,
    announced: ReadonlySet<string>,
  ): (WantedDevice & { readonly announced: ReadonlySet<string> }) | undefined
}

/** `announced` of `wanted`: the entities that the device had so far. */
export function devices(
  { fleet, usage, storage, updates, pages, version }: DevicesNeeds,
  settings: HomeAssistantSettings,
): Devices {
  const fleetItself = () => {
    const state = { ...fleetState(fleet.counts(), version), ...fleetUpdateValues(updates()) }
    const announced = announcedKeys(state, new Set(), true)
    const facts = { nodeName: undefined, page: pages }
    return { state, announced, discovery: discoveryMessage(facts, announced, state, settings) }
  }
  return {
    *ids() {
      yield fleetDevice
      yield* fleet.ids()
    },
    wanted(id, before) {
      if (id === fleetDevice) return fleetItself()
      const node = fleet.node(id)
      if (node === undefined) return undefined
      const nodeName = node.metadata.name ?? ''
      const podsRunning = fleet.podsRunning(nodeName)
      const target = fleet.rollout()?.wish.target
      const values = machineState({
        ...{ node, podsRunning, latestVersion: version, target },
        ...{ usage: usage.newest(nodeName), pools: storage.reportOf(nodeName)?.pools },
      })
      const announced = announcedKeys(values, before, false)
      const state = Object.fromEntries(Object.entries(values).filter(([key]) => announced.has(key) || isUpdateKey(key)))
      const page = pages === undefined ? undefined : `${pages}${nodeHref(nodeName)}`
      const facts = { nodeName, model: modelOf(node), page, mayRestart: allowsRemoteReboot(node) }
      return { state, announced, discovery: discoveryMessage(facts, announced, state, settings) }
    },
  }
}

function isUpdateKey(key: string): boolean {
  return updateKeys.some((one) => one === key)
}
