/** A machine whose pods use what the test sets. */
import type { Clock } from '../../daemon/clock.ts'
import type { NodeReading, NodeUsage, PodDiskReading, PodReading, PodUsage } from '../usage/usage.ts'

export interface FakeUsage {
  readonly pods: PodUsage
  readonly node: NodeUsage
  /** How often it was read. */
  readonly reads: () => number
}

const Mi = 2 ** 20

export function aPodReading(uid: string, cpuNanoSeconds = 0): PodReading {
  const memory = {
    usageBytes: 100 * Mi,
    workingSetBytes: 70 * Mi,
    rssBytes: 50 * Mi,
    cacheBytes: 40 * Mi,
    pageFaults: 10,
    majorPageFaults: 1,
    limitBytes: 128 * Mi,
  }
  return {
    uid,
    namespace: 'default',
    name: `pod-${uid}`,
    startedAt: '2026-01-01T00:00:00Z',
    sandbox: {
      memory: { ...memory, usageBytes: Mi, workingSetBytes: Mi, rssBytes: 0, cacheBytes: 0 },
      pids: { current: 1 },
    },
    network: [
      {
        ...{ name: 'eth0', rxBytes: 1000, rxPackets: 10, rxErrors: 0, rxDropped: 0 },
        ...{ txBytes: 500, txPackets: 5, txErrors: 0, txDropped: 0 },
      },
    ],
    containers: [
      {
        id: `container-${uid}`,
        name: 'server',
        image: 'web:1',
        startedAt: '2026-01-01T00:00:01Z',
        cpu: { usageNanoSeconds: cpuNanoSeconds },
        memory,
        pids: { current: 3 },
        io: [{ device: '/dev/mmcblk0', readBytes: 4_096_000, writtenBytes: 8_192, reads: 1_000, writes: 2 }],
        cpuLimit: { shares: 512, periodMicros: 100_000, quotaMicros: 50_000 },
      },
    ],
  }
}

export function aDiskReading(uid: string): PodDiskReading {
  return {
    uid,
    containers: [
      { name: 'server', rootfs: { usedBytes: 1000, inodesUsed: 10 }, logs: { usedBytes: 200, inodesUsed: 2 } },
    ],
    volumes: [
      { name: 'scratch', inMemory: false, usedBytes: 30, inodesUsed: 3 },
      { name: 'secret', inMemory: true, usedBytes: 4, inodesUsed: 1 },
    ],
  }
}

export const aNodeReading: NodeReading = {
  cpu: { usageNanoSeconds: 1e12 },
  memory: {
    usageBytes: 900 * Mi,
    workingSetBytes: 800 * Mi,
    rssBytes: 500 * Mi,
    cacheBytes: 300 * Mi,
    pageFaults: 1,
    majorPageFaults: 0,
    availableBytes: 200 * Mi,
  },
  network: [],
  defaultInterface: undefined,
  fs: { capacityBytes: 10_000, availableBytes: 4_000, usedBytes: 5_000, inodes: 100, inodesFree: 40 },
  pids: { current: 100, limit: 32_768 },
  bootedMs: Date.parse('2025-12-31T00:00:00Z'),
  agent: { cpuNanoSeconds: 0, rssBytes: 60 * Mi },
}

/** One pod that uses a quarter of a core. */
export function fakeUsage(clock: Clock): FakeUsage {
  let reads = 0
  return {
    reads: () => reads,
    pods: {
      podUsage: async () => [],
      async podReadings() {
        reads++
        return [aPodReading('u1', clock.monotonicMs() * 250_000)]
      },
      podDiskUsage: async () => [aDiskReading('u1')],
    },
    node: { nodeReading: async () => aNodeReading },
  }
}
