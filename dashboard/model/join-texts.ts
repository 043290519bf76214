/** What a person needs to add a machine: the command, and the file for the boot partition. */
import { formatToken, type TokenParts } from '../../api/node/bootstrap-token.ts'
import { agentJoin, type JoinFacts } from '../../api/node/join-lines.ts'

/** The command to run on a machine with the package. */
export function joinLine(facts: JoinFacts): string {
  return `sudo ${agentJoin(facts)}`
}

/** The content of `bramble.yaml` on the boot partition: the machine joins when it first starts. */
export function joinFile(facts: JoinFacts): string {
  return `join: ${agentJoin(facts)}\n`
}

/** Opens Raspberry Pi Imager 2 with the images of this controller, whose page is at `origin`. */
export function imagerLink(origin: string, token: TokenParts): string {
  return `rpi-imager://open?repo=${encodeURIComponent(`${origin}/ui/cards/os_list.json?token=${formatToken(token)}`)}`
}
