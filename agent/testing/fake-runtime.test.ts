import { systemClock } from '../../daemon/clock.ts'
import { fakeRuntime } from './fake-runtime.ts'
import { runtimeContract } from './runtime-contract.ts'

runtimeContract('The engine in memory', async () => {
  const runtime = fakeRuntime(systemClock)
  runtime.images.add('test/busybox:1')
  return { runtime, other: runtime.asSeenBy('pi-02'), image: 'test/busybox:1', freePort: async () => 8080 }
})
