/** What a person needs to add a machine: the command, and the file for the boot partition. */
import { formatToken, type TokenParts } from '../../../api/node/bootstrap-token.ts'

export type JoinFacts = {
  /** `https://HOST:PORT` */
  readonly server: string
  readonly caHash: string
  readonly token: TokenParts
}

/** The command to run on the machine. */
export function joinLine(facts: JoinFacts): string {
  return `sudo ${agentJoin(facts)}`
}

/** The content of `bramble.yaml` on the boot partition: the machine joins when it first starts. */
export function joinFile(facts: JoinFacts): string {
  return `join: ${agentJoin(facts)}\n`
}

function agentJoin({ server, caHash, token }: JoinFacts): string {
  return `bramble-agent join ${server} --token ${formatToken(token)} --ca-hash ${caHash}`
}
