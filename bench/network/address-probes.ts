/** Measures the CPU time of probes of addresses: to make a proof, and to check one. `--help` prints the usage. */
import { randomBytes } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { prover } from '../../agent/network/probes/node-proof.ts'
import {
  nonceBytes,
  readChallenge,
  readProof,
  writeChallenge,
  writeProof,
} from '../../agent/network/probes/probe-message.ts'
import { openAuthority } from '../../certs/authority.ts'
import { issueNode } from '../../certs/issue.ts'
import { benchmarkOptions } from '../options/benchmark-options.ts'

const row = {
  name: 'node dist/bench/network/address-probes.js',
  text: 'Makes and checks proofs of addresses, with certificates of the kind that nodes have, and prints the CPU time of each.',
  options: { probes: { value: 'N', help: 'number of probes', range: [1, 1_000_000], default: '2000' } },
} as const

async function main(): Promise<number> {
  const { probes } = benchmarkOptions(row)
  const folder = await mkdtemp(join(tmpdir(), 'bramble-probes-'))
  try {
    const authority = await openAuthority(folder, Date.now())
    const [one, other] = ['pi-1', 'pi-2'].map((nodeName) => {
      const credentials = { ca: authority.certificate, ...issueNode(authority, { nodeName, nowMs: Date.now() }) }
      return prover(() => credentials)
    })
    if (one === undefined || other === undefined) return 1
    const challenges = Array.from({ length: probes }, () =>
      writeChallenge({ nonce: randomBytes(nonceBytes), address: '192.168.1.2' }),
    )
    const proofs: Buffer[] = []
    const made = cpuMicroseconds(() => {
      for (const message of challenges) {
        const challenge = readChallenge(message)
        const proof = challenge && writeProof(other.prove(challenge))
        if (proof !== undefined) proofs.push(proof)
      }
    })
    let proven = 0
    const checked = cpuMicroseconds(() => {
      for (const [index, message] of proofs.entries()) {
        const challenge = readChallenge(challenges[index] ?? message)
        const proof = readProof(message)
        if (challenge !== undefined && proof !== undefined && one.proven(challenge, proof) === 'pi-2') proven++
      }
    })
    const each = (microseconds: number) => `${Math.round(microseconds / challenges.length)} µs`
    console.log(
      `${proven} of ${challenges.length} proofs of ${proofs[0]?.length} bytes, answers to challenges of ${challenges[0]?.length} bytes: made in ${each(made)}, checked in ${each(checked)} of CPU time each`,
    )
    return proven === challenges.length ? 0 : 1
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

function cpuMicroseconds(work: () => void): number {
  const before = process.cpuUsage()
  work()
  const { user, system } = process.cpuUsage(before)
  return user + system
}

process.exitCode = await main()
