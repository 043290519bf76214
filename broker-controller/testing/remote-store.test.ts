import { systemClock } from '../../daemon/clock.ts'
import { memoryStore } from '../store/memory-store.ts'
import { remoteStore } from './remote-store.ts'
import { storeConnectionContract } from './store-connection-contract.ts'
import { storeContract } from './store-contract.ts'

storeContract((needs) => remoteStore(memoryStore(needs)).store)

storeConnectionContract(async () => {
  const other = memoryStore({ clock: systemClock, historyLength: 8 })
  return { ...remoteStore(other), other }
})
