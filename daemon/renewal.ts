/** The time at which a certificate is renewed. */

/** Both of the wall clock. */
export type Life = { readonly sinceMs: number; readonly untilMs: number }

/** At 70 to 90 % of its life, as the kubelet: `share`, from 0 to 1, spreads a fleet that joined in one hour. */
export function renewalDueMs({ sinceMs, untilMs }: Life, share: number): number {
  return sinceMs + (untilMs - sinceMs) * (0.7 + 0.2 * share)
}
