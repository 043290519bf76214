/** etcd loses its majority under a fleet, with all periods shortened. `bench/replicas/failures.ts` does it with the usual ones, for ten minutes. */
import { test } from 'tap'
import { loseQuorum } from './replicas/quorum.ts'
import { whyNoDockerd } from './support/dockerd.ts'
import { noEtcd } from './support/etcd.ts'
import { compressed } from './support/outage.ts'

test(
  'etcd without a majority for longer than the grace period of nodes: pods run, reads are answered, and none is evicted afterwards',
  {
    skip: whyNoDockerd() || noEtcd,
    timeout: 300_000,
  },
  (t) => loseQuorum(t, { ...compressed(5), seconds: 25 }, 1),
)
